"""Registries of classes and functions by name, hints for misspelt names, and plugins.

A plugin is a folder of Python modules, imported as the package `gistmill_plugins.<folder's name>`
to avoid clashes with other packages. Its `.sql` files lie beside them (sql_files.py); its subfolder
`conf` has the layout of ours. `plugins=FOLDER,FOLDER` loads plugins; an installed package registers
one in the entry point group `gistmill.plugins`, as gistmill does with its own stages.
"""

import difflib
import importlib
import importlib.metadata
import pickle
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pipeline.core.errors import UsageError, contained
from pipeline.core.settings import CONF

T = TypeVar("T")
PARENT = "gistmill_plugins"  # the package of all plugins that are loaded from folders
REGISTRIES: "dict[str, Registry[Any]]" = {}  # by kind, such as metrics, as `ls` lists them
_FOLDERS: dict[str, Path] = {}  # by package name, of plugins loaded by this process


class Registry(dict[str, T]):
    """The classes or functions of one kind by name, ours and those of plugins. `about`: a line on
    each. `role`: how messages describe a name, such as "is the engine {!r}". `kind`: the heading of
    the registry in `ls`. `has_versions`: a plugin's class without a `version` is refused."""

    def __init__(self, role: str, kind: str | None = None, has_versions: bool = False) -> None:
        super().__init__()
        self.about: dict[str, str] = {}
        self._role, self._has_versions = role, has_versions
        if kind is not None:
            REGISTRIES[kind] = self

    def add(self, name: str, value: T, about: str | None = None) -> None:
        """Add a class or function; `about` is by default the first sentence of its docstring. A
        class of the same file and name replaces the earlier one, as Python creates a dataclass with
        slots twice.

        Raises UsageError if another class or function has the name, or if a plugin's class has no
        `version`: its old rows could not be told from those of changed code.
        """
        maker, other = maker_of(value), maker_of(self.get(name))
        if (
            self._has_versions
            and not is_ours(maker)
            and not any("version" in vars(base) for base in maker.__mro__ if not is_ours(base))
        ):
            raise UsageError(
                f"{maker.__module__}: {maker.__name__} has no `version`; write `version: "
                "ClassVar[int] = 1`, and raise it when its rows, or the values it reads, change "
                "meaning"
            )
        if other and (_file(other), other.__name__) != (_file(maker), maker.__name__):
            raise UsageError(
                f"{maker.__module__}: {maker.__name__} {self._role.format(name)}, which is that of "
                f"{other.__module__}.{other.__name__}; give it another name"
            )
        self[name] = value
        self.about[name] = first_sentence(maker) if about is None else about


def maker_of(value: Any) -> Any:
    """The registered class or function; for a metric its function."""
    return value if isinstance(value, type) else getattr(value, "function", value)


def _file(maker: Any) -> str:
    """The file that defines a class or function, or else its module's name."""
    return getattr(sys.modules.get(maker.__module__), "__file__", None) or str(maker.__module__)


def first_sentence(documented: Any) -> str:
    """The first sentence of a docstring on one line, without its full stop."""
    text = " ".join((documented.__doc__ or "").split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(".")


def is_ours(maker: Any) -> bool:
    return maker.__module__.split(".")[0] in ("pipeline", "stages")


def file_of(maker: Any) -> str:
    """The path of a class's or function's module, beginning with its package's folder."""
    packages = maker.__module__.removeprefix(f"{PARENT}.").split(".")[:-1]
    return "/".join([*packages, Path(_file(maker)).name])


def hint(name: str, names: Sequence[str]) -> str:
    """The end of a message about an unknown name: the names that are similar; without any, all
    names if they are few, or else the nearest."""
    similar = difflib.get_close_matches(name[:200], names, cutoff=0.74)
    if not similar and len(names) <= 30:
        return f"there are {', '.join(names)}" if names else "there is none"
    return f"nearest: {', '.join(similar) or nearest(name, names, 3)}"


def nearest(name: str, names: Sequence[str], most: int = 10) -> str:
    """The `most` names that resemble `name` most, on one line; "..." if there are others."""
    ratio = {other: difflib.SequenceMatcher(None, name[:200], other).ratio() for other in names}
    first = sorted(names, key=lambda other: -ratio[other])[:most]  # of equal ones the earlier
    return ", ".join(first) + (" ..." if len(names) > most else "")


def plugin_folders(plugins: str | None) -> list[str]:
    return [folder.strip() for folder in (plugins or "").split(",") if folder.strip()]


def loaded_folders() -> list[Path]:
    return [*_FOLDERS.values()]


@cache
def conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The `conf` folders of the named plugins, then our own; imports their modules once."""
    return (*load_plugins(plugin_folders(plugins)), CONF)


def existing_conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The folders of `conf_folders` that still exist, for a stored run. Imports none of the named
    plugins."""
    folders = [*map(Path, plugin_folders(plugins)), *import_installed("tables")]
    return (*(folder / "conf" for folder in folders if (folder / "conf").is_dir()), CONF)


def load_plugins(folders: Sequence[str]) -> list[Path]:
    """Import every module of each folder and of installed plugins; returns their `conf` folders.
    Raises UsageError for a folder that is no plugin or has the name of another one."""
    installed = import_installed()  # first: a name clash must blame the user's plugin
    named = [_load_folder(Path(folder).resolve(), f"plugins={folder}") for folder in folders]
    return [folder / "conf" for folder in (*named, *installed) if (folder / "conf").is_dir()]


@cache
def import_installed(part: str = "") -> tuple[Path, ...]:
    """Import the installed plugins, gistmill included; returns their folders. `part`: the only
    subfolder of our modules to import: `tables` saves a reading command a fifth of a second."""
    folders = []
    for entry in importlib.metadata.entry_points(group="gistmill.plugins"):
        with _in_one_line(f"the installed plugin {entry.name} ({entry.value})"):
            package: ModuleType = entry.load()
            of_part = f"{entry.value}.{part}" if part and entry.value == "stages" else None
            import_all(importlib.import_module(of_part) if of_part else package)
            folders.append(Path(next(iter(package.__path__))))
    return tuple(folders)


def import_all(package: ModuleType) -> None:
    for folder in package.__path__:
        for file in _files(Path(folder), "py"):
            parts = file.relative_to(folder).with_suffix("").parts
            importlib.import_module(".".join([package.__name__, *parts]).removesuffix(".__init__"))


def _files(folder: Path, *endings: str) -> list[Path]:
    """The importable files with these endings below a folder, but pytest's."""
    return [
        file
        for ending in endings
        for file in sorted(folder.rglob(f"*.{ending}"))
        if not file.name.startswith(("test_", "conftest."))
        and all(map(str.isidentifier, file.relative_to(folder).with_suffix("").parts))
    ]


def _load_folder(folder: Path, word: str) -> Path:
    """Import a plugin's modules once; returns the folder."""
    name = folder.name
    if not folder.is_dir():
        raise UsageError(f"{word}: no such folder; name one that holds Python modules")
    if not name.isidentifier():
        raise UsageError(f"{word}: {name!r} cannot be imported; name the folder like my_plugin")
    if _FOLDERS.get(name, folder) != folder:
        raise UsageError(f"{word}: {_FOLDERS[name]} has the same name; rename one of the folders")
    if name in _FOLDERS:
        return folder
    with _in_one_line(word):
        importlib.invalidate_caches()
        for module in [m for m in sys.modules if f"{m}.".startswith(f"{PARENT}.{name}.")]:
            del sys.modules[module]  # of an import that failed, as a notebook may try again
        parent = sys.modules.setdefault(PARENT, ModuleType(PARENT))
        parent.__path__ = [str(folder.parent)]  # for this import alone
        package = importlib.import_module(f"{PARENT}.{name}")
        parent.__path__ = []
        import_all(package)
    _FOLDERS[name] = folder
    return folder


@contextmanager
def _in_one_line(plugin: str) -> Iterator[None]:
    """Turn an exception of the plugin's code into a UsageError with its line."""
    with contained() as raised:
        yield
    if isinstance(raised.error, UsageError):
        raise UsageError(f"{plugin}: {raised.error}") from None
    if raised.error is not None:
        raise UsageError(f"{plugin}: cannot be imported: {raised.line()}; fix it") from None


def pickle_with_plugins(content: Any) -> bytes:
    """Pickle an object for workers, with the modules and .sql files of the loaded plugins, which
    the workers' machines need not have."""
    # Not by Ray's `py_modules`: they are set once, when a process joins Ray, so a second run in a
    # notebook could not add a plugin. Classes pickled by value are not registered in the worker.
    plugins = {
        name: {str(f.relative_to(folder)): f.read_bytes() for f in _files(folder, "py", "sql")}
        for name, folder in _FOLDERS.items()
    }
    return pickle.dumps((plugins, pickle.dumps(content)))


def unpickle_with_plugins(pickled: bytes) -> Any:
    """Import the plugins in a pickle of this run's driver, then unpickle its object. (Nothing that
    a warehouse, a corpus or a server holds is ever unpickled.) Raises UsageError, with the
    machine's name, if a plugin or one of its imports is not installed there."""
    plugins, content = pickle.loads(pickled)
    try:
        with tempfile.TemporaryDirectory(prefix="gistmill-plugin-") as parent:
            for name in (name for name in plugins if name not in _FOLDERS):  # as they were loaded
                folder = Path(parent).resolve() / name
                folder.mkdir()  # a plugin may have no modules, only configuration
                for path, text in plugins[name].items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(text)
                _load_folder(folder, f"plugins={name}")
        return pickle.loads(content)
    except (UsageError, ImportError) as error:
        raise UsageError(
            f"on the machine {platform.node()}: {error}; install there what plugins need"
        ) from None
