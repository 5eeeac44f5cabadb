"""Register classes and functions by name (stages, prompts, tables, engines, corpus formats,
measures, rubrics, extractors), and find the names nearest to a misspelt one."""

import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pipeline.core.errors import UsageError

T = TypeVar("T")
PARENT = "gistmill_plugins"  # the package of all plugins that are loaded from folders
REGISTRIES: "dict[str, Registry[Any]]" = {}  # by kind, such as metrics, as `ls` lists them
_LIKE = 0.74  # of difflib's ratio
_FEW = 30  # names that a message lists


class Registry(dict[str, T]):
    """All that is registered of one kind, ours and that of plugins, by name.

    `about`: a line on each. `role`: what a name is to its class, for messages, such as "is the
    engine {!r}". `kind`: as what `ls` lists them. `has_versions`: a plugin's class is refused if it
    has no `version`.
    """

    def __init__(self, role: str, kind: str | None = None, has_versions: bool = False) -> None:
        super().__init__()
        self.about: dict[str, str] = {}
        self._role, self._has_versions = role, has_versions
        if kind is not None:
            REGISTRIES[kind] = self

    def add(self, name: str, value: T, about: str | None = None) -> None:
        """Add a class or function; `about` is by default its docstring's first sentence.

        Raises UsageError where another one has the name. One of the same file and name replaces the
        earlier one: dataclasses with slots are created twice, and a notebook may have imported a
        plugin's module by another name.
        """
        maker, other = maker_of(value), maker_of(self.get(name))
        if self._has_versions:
            _refuse_no_version(maker)
        if other is not None and _origin(other) != _origin(maker):
            raise UsageError(
                f"{maker.__module__}: {maker.__name__} {self._role.format(name)}, which is that of "
                f"{other.__module__}.{other.__name__}; give it another name"
            )
        self[name] = value
        self.about[name] = first_sentence(maker) if about is None else about


def maker_of(value: Any) -> Any:
    """The class or function that is registered; of a metric its function."""
    return value if isinstance(value, type) else getattr(value, "function", value)


def first_sentence(documented: Any) -> str:
    """That of a class's or function's own docstring, on one line, without its full stop."""
    text = " ".join((documented.__doc__ or "").split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(".")


def is_ours(maker: Any) -> bool:
    """True for a class or function of gistmill's own."""
    return maker.__module__.split(".")[0] in ("pipeline", "stages")


def file_of(maker: Any) -> str:
    """The file of a class's or function's module, from its package's folder on."""
    parts = maker.__module__.removeprefix(f"{PARENT}.").split(".")
    return "/".join([*parts[:-1], Path(_source(maker) or parts[-1]).name])


def _refuse_no_version(cls: type) -> None:
    """Raise UsageError for a plugin's class that has no `version`, its own or that of a base in the
    plugin: rows made by what it was before would be taken for its own."""
    bases = [base for base in cls.__mro__ if not is_ours(base)]
    if not is_ours(cls) and not any("version" in vars(base) for base in bases):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} has no `version`; write `version: ClassVar[int] = 1`"
            ", and raise it when its rows, or the values it reads, change meaning"
        )


def _source(maker: Any) -> str | None:
    return getattr(sys.modules.get(maker.__module__), "__file__", None)


def _origin(maker: Any) -> tuple[str, str]:
    """Where a class or function is defined: its file, or else its module, and its name."""
    return _source(maker) or maker.__module__, maker.__name__


def hint(name: str, known: Sequence[str], most: int = 3) -> str:
    """The end of a message about an unknown name: the names similar to it; if there are none, all
    names if they are few, else the nearest."""
    similar = difflib.get_close_matches(name[:200], known, n=most, cutoff=_LIKE)
    if not similar and len(known) <= _FEW:
        return f"there are {', '.join(known)}" if known else "there is none"
    return f"nearest: {', '.join(similar) or nearest(name, known, most)}"


def nearest(name: str, known: Sequence[str], most: int = 10) -> str:
    """At most so many of the known names, the most similar first, for a message."""
    ratios = {other: difflib.SequenceMatcher(None, name[:200], other).ratio() for other in known}
    names = sorted(known, key=lambda other: -ratios[other])[:most]  # of equal ones the earlier
    return ", ".join(names) + (" ..." if len(known) > most else "")
