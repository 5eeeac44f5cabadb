"""Registries of classes and functions by name (stages, prompts, tables, engines, corpus formats,
measures, rubrics, extractors), with hints for misspelt names."""

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
    """Everything of one kind that is registered by name, ours and plugins'.

    `about`: a line on each. `role`: how messages describe a name, such as "is the engine {!r}".
    `kind`: its heading in `ls`. `has_versions`: a plugin's class without a `version` is refused.
    """

    def __init__(self, role: str, kind: str | None = None, has_versions: bool = False) -> None:
        super().__init__()
        self.about: dict[str, str] = {}
        self._role, self._has_versions = role, has_versions
        if kind is not None:
            REGISTRIES[kind] = self

    def add(self, name: str, value: T, about: str | None = None) -> None:
        """Add a class or function; `about` is by default its docstring's first sentence.

        Raises UsageError if another one has the name. One of the same file and name replaces the
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
    """The registered class or function; for a metric its function."""
    return value if isinstance(value, type) else getattr(value, "function", value)


def first_sentence(documented: Any) -> str:
    """The first sentence of a docstring on one line, without its full stop."""
    text = " ".join((documented.__doc__ or "").split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(".")


def is_ours(maker: Any) -> bool:
    """True for a class or function of gistmill's own."""
    return maker.__module__.split(".")[0] in ("pipeline", "stages")


def file_of(maker: Any) -> str:
    """The path of a class's or function's module, beginning with its package's folder."""
    parts = maker.__module__.removeprefix(f"{PARENT}.").split(".")
    return "/".join([*parts[:-1], Path(_source(maker) or parts[-1]).name])


def _refuse_no_version(cls: type) -> None:
    """Raise UsageError if a plugin's class has no `version`, its own or inherited within the
    plugin: old rows could not be told from those of changed code."""
    bases = [base for base in cls.__mro__ if not is_ours(base)]
    if not is_ours(cls) and not any("version" in vars(base) for base in bases):
        raise UsageError(
            f"{cls.__module__}: {cls.__name__} has no `version`; write `version: ClassVar[int] = 1`"
            ", and raise it when its rows, or the values it reads, change meaning"
        )


def _source(maker: Any) -> str | None:
    return getattr(sys.modules.get(maker.__module__), "__file__", None)


def _origin(maker: Any) -> tuple[str, str]:
    """The file that defines a class or function (or else its module), and its name."""
    return _source(maker) or maker.__module__, maker.__name__


def hint(name: str, known: Sequence[str], most: int = 3) -> str:
    """End a message about an unknown name: list similar names; if there are none, all names if they
    are few, or else the nearest."""
    similar = difflib.get_close_matches(name[:200], known, n=most, cutoff=_LIKE)
    if not similar and len(known) <= _FEW:
        return f"there are {', '.join(known)}" if known else "there is none"
    return f"nearest: {', '.join(similar) or nearest(name, known, most)}"


def nearest(name: str, known: Sequence[str], most: int = 10) -> str:
    ratios = {other: difflib.SequenceMatcher(None, name[:200], other).ratio() for other in known}
    names = sorted(known, key=lambda other: -ratios[other])[:most]  # of equal ones the earlier
    return ", ".join(names) + (" ..." if len(known) > most else "")
