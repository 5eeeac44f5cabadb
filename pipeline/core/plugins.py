"""Plugins: a user's own stages, prompts, methods, families and corpora.

A plugin is a folder of Python modules, imported as the package `gistmill_plugins.<folder's name>`,
so that it does not matter what else is importable by that name here or on a worker. Its modules
import one another by `from .module import name`. The `.sql` files of its tables lie beside them
(sql_files.py); its subfolder `conf` has the layout of ours (`conf/method/*.yaml`,
`conf/prompts/<family>/`, `conf/corpus/`, `conf/experiment/`).
`plugins=FOLDER,FOLDER` loads plugins; an installed package registers one in the entry point group
`gistmill.plugins`, as gistmill does with its own stages. Modules and `.sql` files are sent to
workers, whose machines need not have the folder.
"""

import importlib
import importlib.metadata
import importlib.util
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.settings import CONF

_GROUP = "gistmill.plugins"
PARENT = "gistmill_plugins"  # the package of all that are loaded from folders
# What a broken module may raise while it is imported.
_IMPORT_ERRORS = (
    ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, ArithmeticError,
    LookupError, AssertionError, RuntimeError, OSError,
)  # fmt: skip
_ABSOLUTE = "a module imports {}, of the plugin itself; write `from .module import name`"
_PLACES: dict[str, Path] = {}  # package name -> folder, of plugins loaded by this process


@dataclass(frozen=True)
class Plugin:
    """A plugin's modules and .sql files by relative path, to be sent to another machine."""

    name: str
    files: Mapping[str, bytes]


def plugin_folders(plugins: str | None) -> list[str]:
    """The folders that `plugins=A,B` names."""
    return [folder.strip() for folder in (plugins or "").split(",") if folder.strip()]


@cache
def conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The `conf` folders of the plugins that `plugins=A,B` names, whose modules are imported once,
    then our own. Raises UsageError as `load_plugins`."""
    return (*load_plugins(plugin_folders(plugins)), CONF)


def load_plugins(folders: Sequence[str]) -> list[Path]:
    """Import every module of each folder and of installed plugins; returns their `conf` folders.

    Raises UsageError, a single line, for a folder that does not exist, cannot be imported or has
    the name of another plugin.
    """
    found = [_imported(Path(folder).resolve(), f"plugins={folder}") for folder in folders]
    return [place / "conf" for place in [*found, *import_installed()] if (place / "conf").is_dir()]


@cache
def import_installed() -> tuple[Path, ...]:
    """Import the plugins among installed packages, gistmill's own included; returns their
    folders."""
    places = []
    for entry in importlib.metadata.entry_points(group=_GROUP):
        package = _called(f"the installed plugin {entry.name} ({entry.value})", entry.load)
        import_all(package)
        places.append(Path(next(iter(package.__path__))))
    return tuple(places)


def import_all(package: ModuleType) -> None:
    """Import every module below a package, which registers what it defines."""
    for folder in package.__path__:
        for file in _files(Path(folder), "py"):
            parts = file.relative_to(folder).with_suffix("").parts
            importlib.import_module(".".join([package.__name__, *parts]).removesuffix(".__init__"))


def _files(folder: Path, ending: str) -> list[Path]:
    """The files of a package and its subfolders that end so, with or without an __init__.py. Paths
    that are not importable names, such as a virtual environment in .venv, are left out, and
    pytest's files (test_*.py, conftest.py)."""
    files = sorted(folder.rglob(f"*.{ending}"))
    files = [f for f in files if not f.name.startswith(("test_", "conftest."))]
    return [
        f for f in files if all(map(str.isidentifier, f.relative_to(folder).with_suffix("").parts))
    ]


def _imported(folder: Path, place: str) -> Path:
    name = folder.name
    if not folder.is_dir():
        raise UsageError(f"{place}: no such folder; name one that holds Python modules")
    if not name.isidentifier():
        raise UsageError(f"{place}: {name!r} cannot be imported; name the folder like my_plugin")
    if name not in _PLACES:
        _called(place, lambda: _import_folder(name, folder))
        _PLACES[name] = folder
    elif _PLACES[name] != folder:
        raise UsageError(f"{place}: {_PLACES[name]} has the same name; rename one of the folders")
    return folder


def _import_folder(name: str, folder: Path) -> None:
    """Import the folder's modules, whether or not it has an __init__.py; none stays of one that
    cannot be imported, so that it can be tried again."""
    importlib.invalidate_caches()
    parent = ModuleSpec(PARENT, None, is_package=True)
    sys.modules.setdefault(PARENT, importlib.util.module_from_spec(parent))
    spec = PathFinder.find_spec(f"{PARENT}.{name}", [str(folder.parent)])
    assert spec is not None, "any folder is at least a namespace package"
    package = importlib.util.module_from_spec(spec)
    known = {*sys.modules}
    sys.modules[spec.name] = package
    try:
        if spec.loader is not None:
            spec.loader.exec_module(package)
        import_all(package)
        _refuse_copies(name, folder, {*sys.modules} - known)
    except (UsageError, *_IMPORT_ERRORS) as error:
        for module in {*sys.modules} - known:
            if module.startswith(spec.name):
                del sys.modules[module]
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(name):
            raise UsageError(_ABSOLUTE.format(error.name)) from None
        raise


def _refuse_copies(name: str, folder: Path, modules: Iterable[str]) -> None:
    """Raise UsageError if a plugin has imported a module of its own by the folder's name: another
    copy of it, which workers might not find."""
    for module in modules:
        file = getattr(sys.modules[module], "__file__", None)
        if module.split(".")[0] == name and file and Path(file).is_relative_to(folder):
            raise UsageError(_ABSOLUTE.format(module))


def _called(place: str, load: Callable[[], Any]) -> Any:
    """The result of `load`. An exception of the plugin's code becomes a UsageError with its
    line."""
    try:
        return load()
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    except _IMPORT_ERRORS as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
        why = " ".join(str(error).split())
        raise UsageError(
            f"{place}: cannot be imported: {type(error).__name__}: {why} ({line}); fix it"
        ) from None


def loaded_folders() -> list[str]:
    """The folders of the plugins that `plugins=` named in this process."""
    return [str(folder) for folder in _PLACES.values()]


def pack_plugins() -> tuple[Plugin, ...]:
    """The plugins loaded by this process, to be sent to workers."""
    return tuple(Plugin(name, _contents(folder)) for name, folder in _PLACES.items())


def _contents(folder: Path) -> dict[str, bytes]:
    files = [*_files(folder, "py"), *_files(folder, "sql")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def pickle_with_plugins(what: Any) -> bytes:
    """`what`, pickled together with the loaded plugins, whose classes it may contain."""
    return pickle.dumps((pack_plugins(), pickle.dumps(what)))


def unpickle_with_plugins(content: bytes) -> Any:
    """Unpickle what `pickle_with_plugins` made, once its plugins are imported.

    It comes from this run's own driver through Ray, where whoever can write can execute code
    anyway; nothing that a warehouse, a corpus or a server holds is ever unpickled.
    """
    plugins, what = pickle.loads(content)
    with tempfile.TemporaryDirectory(prefix="gistmill-plugin-") as place:
        for plugin in plugins:
            if plugin.name not in _PLACES:
                _imported(_written(plugin, Path(place)), f"plugins={plugin.name}")
    return pickle.loads(what)


def _written(plugin: Plugin, place: Path) -> Path:
    """The plugin's folder, with its files, which are needed while it is imported."""
    folder = place.resolve() / plugin.name
    folder.mkdir()  # a plugin may have no modules, only configuration
    for path, text in plugin.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder
