"""Register classes and functions by name (stages, prompts, tables, engines, corpus formats,
measures, rubrics, extractors), and find the names nearest to a misspelt one."""

import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

from pipeline.core.errors import UsageError

T = TypeVar("T")
_LIKE = 0.74  # of difflib's ratio
_FEW = 30  # names that a message lists
REGISTRIES: "dict[str, Registry[Any]]" = {}  # by kind, such as metrics, as `ls` lists them


class Registry(dict[str, T]):
    """Classes or functions of one kind by name, ours and those of plugins; `about`: a line on each.

    `role`: what a name is to its class, for messages, such as "is the engine {!r}". `kind`: as what
    `ls` lists them.
    """

    def __init__(self, role: str, kind: str | None = None) -> None:
        super().__init__()
        self.about: dict[str, str] = {}
        self._role = role
        if kind is not None:
            REGISTRIES[kind] = self

    def add(self, name: str, one: T, about: str | None = None) -> None:
        """Add a class or function; `about` is by default its docstring's first sentence.

        Raises UsageError where another one has the name. One of the same file and name replaces the
        earlier one: dataclasses with slots are created twice, and a notebook may have imported a
        plugin's module by another name.
        """
        added: Any = one
        other: Any = self.get(name)
        if other is not None and _origin(other) != _origin(added):
            raise UsageError(
                f"{added.__module__}: {added.__name__} {self._role.format(name)}, which is that of "
                f"{other.__module__}.{other.__name__}; give it another name"
            )
        self[name] = one
        self.about[name] = first_sentence(one) if about is None else about


def first_sentence(one: Any) -> str:
    """That of a class's or function's own docstring, on one line, without its full stop."""
    text = " ".join((one.__doc__ or "").split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(".")


def is_ours(one: Any) -> bool:
    """True for a class or function of gistmill's own."""
    return one.__module__.split(".")[0] in ("pipeline", "stages")


def refuse_no_version(cls: type) -> None:
    """Raise UsageError for a plugin's class that has no `version`, its own or that of a base in the
    plugin: rows made by what it was before would be taken for its own."""
    bases = [base for base in cls.__mro__ if not is_ours(base)]
    if not is_ours(cls) and not any("version" in vars(base) for base in bases):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} has no `version`; write `version: ClassVar[int] = 1`"
            ", and raise it when its rows, or the values it reads, change meaning"
        )


def _origin(one: Any) -> tuple[str, str]:
    """Where a class or function is defined: its file, or else its module, and its name."""
    file = getattr(sys.modules.get(one.__module__), "__file__", None)
    return file or one.__module__, one.__name__


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
