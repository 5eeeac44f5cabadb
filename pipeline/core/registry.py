"""Register classes and functions by name (stages, prompts, tables, engines, corpus formats,
metrics, rubrics), tell a plugin's changed one from the earlier one, and find the names nearest to a
misspelt one."""

import ast
import difflib
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.plugins import PARENT

_LIKE = 0.74  # of difflib's ratio
_FEW = 30  # names that a message lists
LISTED: "dict[str, dict[str, Listed]]" = {}  # kind, as metrics -> name; for `ls` and `schema`
_SOURCES: dict[str, str] = {}  # module -> hash of its source when it last registered something


def register(known: dict[str, Any], name: str, one: Any, what: str) -> None:
    """Add a class or function to the registry `known`; `what` describes the name's role, for the
    message.

    Raises UsageError where another one has the name. One of the same file and name replaces the
    earlier one: dataclasses with slots are created twice, and a notebook may have imported a
    plugin's module by another name.
    """
    other = known.get(name)
    if other is not None and _origin(other) != _origin(one):
        raise UsageError(
            f"{one.__module__}: {one.__name__} {what}, which is that of "
            f"{other.__module__}.{other.__name__}; give it another name"
        )
    known[name] = one
    if not is_ours(one):
        _remember_source(one.__module__)


@dataclass(frozen=True)
class Listed:
    """A registered class or function, and in a line what it is."""

    one: Any
    about: str


def list_as(kind: str, name: str, one: Any, about: str) -> None:
    """List a registered class or function among those of its kind."""
    LISTED.setdefault(kind, {})[name] = Listed(one, about)


def first_sentence(one: Any) -> str:
    """That of a class's or function's own docstring, on one line, without its full stop."""
    text = " ".join((one.__doc__ or "").split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(".")


def is_ours(one: Any) -> bool:
    """True for a class or function of gistmill's own, whose source is not hashed."""
    return one.__module__.split(".")[0] in ("pipeline", "stages")


def plugin_of(module: str) -> str:
    """The package of a module's plugin."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == PARENT else 1])


def version_of(one: Any) -> int | str | None:
    """The version of a registered class or function, hashed into steps: the hash of its source, or
    else its `version`; None for one of ours without a version. Raises as `source_of`."""
    version: int | None = getattr(one, "version", None)
    return source_of(one) or version


def source_of(one: Any) -> str | None:
    """8 hex of the source of a plugin's class or function: of its module and of those of its
    package that this imports. None for one of ours, and where it, or a base that is not ours, has a
    `version`.

    Raises UsageError for one without either, as in a notebook.
    """
    bases = getattr(one, "__mro__", (one,))
    if is_ours(one) or any("version" in vars(base) for base in bases if not is_ours(base)):
        return None
    if one.__module__ not in _SOURCES:
        raise UsageError(f"{one.__module__}: {one.__name__} is in no file; give it a `version`")
    return _SOURCES[one.__module__]


def _remember_source(module: str) -> None:
    """Keep the hash of a plugin's source as it is now: the file may change later."""
    origin = getattr(sys.modules[module], "__file__", None)
    if not origin:
        return
    package = plugin_of(module)
    folder = Path(next(iter(getattr(sys.modules.get(package), "__path__", ())), origin))
    read, waiting = dict[Path, bytes](), [Path(origin)]
    while waiting:
        file = waiting.pop()
        if file not in read and file.is_file():
            read[file] = file.read_bytes()
            waiting += _imported(file, read[file], package, folder)
    found = sorted((relpath(file, Path(origin).parent), read[file]) for file in read)
    _SOURCES[module] = hashlib.sha256(repr(found).encode()).hexdigest()[:8]


def _imported(file: Path, source: bytes, package: str, folder: Path) -> Iterator[Path]:
    """The files that may be those of a source's imports of its package, which is in `folder`."""
    for level, name in _names(ast.parse(source)):
        own = name if level else name.removeprefix(f"{package}.")
        if level or own != name:
            module = (file.parents[level - 1] if level else folder).joinpath(*own.split("."))
            yield from (module.with_suffix(".py"), module / "__init__.py")


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The level and name of each module that may be imported: of `from .a import b` a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            of = node.module or ""
            yield node.level, of
            yield from ((node.level, f"{of}.{name.name}".lstrip(".")) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((0, name.name) for name in node.names)


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
