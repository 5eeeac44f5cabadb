"""Register classes by name (stages, prompts, tables, corpus formats), and find the names nearest to
a misspelt one."""

import difflib
import sys
from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import UsageError

_LIKE = 0.74  # of difflib's ratio
_FEW = 30  # names that a message lists


def register(known: dict[str, Any], name: str, cls: type, what: str) -> None:
    """Add a class to the registry `known`; `what` describes the name's role, for the message.

    Raises UsageError where another class has the name. A class of the same file and name replaces
    the earlier one: dataclasses with slots are created twice, and a notebook may have imported a
    plugin's module by another name.
    """
    other = known.get(name)
    if other is not None and _origin(other) != _origin(cls):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} {what}, which is that of "
            f"{other.__module__}.{other.__name__}; give it another name"
        )
    known[name] = cls


def _origin(cls: type) -> tuple[str, str]:
    """Where a class is defined: its file, or else its module, and its name."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file or cls.__module__, cls.__name__


def hint(name: str, known: Sequence[str], most: int = 3) -> str:
    """The end of a message about an unknown name: the names similar to it; if there are none, all
    names if they are few, else the nearest."""
    near = difflib.get_close_matches(name[:200], known, n=most, cutoff=_LIKE)
    if near:
        return f"nearest: {', '.join(near)}"
    if len(known) <= _FEW:
        return f"there are {', '.join(known)}" if known else "there is none"
    return f"nearest: {nearest(name, known, most)}"


def nearest(name: str, known: Sequence[str], most: int = 10) -> str:
    """At most so many of the known names, the most similar first, for a message."""
    ratios = {one: difflib.SequenceMatcher(None, name[:200], one).ratio() for one in known}
    found = sorted(known, key=lambda one: -ratios[one])[:most]  # of equal ones the earlier first
    return ", ".join(found) + (" ..." if len(known) > most else "")
