"""Plugins: a user's own stages, prompts, methods, families and corpora.

A plugin is a folder of Python modules, imported as the package `gistmill_plugins.<folder's name>`
to avoid clashes with other packages. Its modules import one another by `from .module import name`.
The `.sql` files of its tables lie beside them (sql_files.py); its subfolder `conf` has the layout
of ours (`conf/method/*.yaml`, `conf/prompts/<family>/`, `conf/corpus/`, `conf/experiment/`).
`plugins=FOLDER,FOLDER` loads plugins; an installed package registers one in the entry point group
`gistmill.plugins`, as gistmill does with its own stages.
"""

import importlib
import importlib.metadata
import importlib.util
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.core.errors import UsageError, contained
from pipeline.core.registry import PARENT
from pipeline.core.settings import CONF

_GROUP = "gistmill.plugins"
_FOLDERS: dict[str, Path] = {}  # by package name, of plugins loaded by this process


def plugin_folders(plugins: str | None) -> list[str]:
    return [folder.strip() for folder in (plugins or "").split(",") if folder.strip()]


@cache
def conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The `conf` folders of the plugins that `plugins=A,B` names, then our own; imports their
    modules once. Raises UsageError as `load_plugins` does."""
    return (*load_plugins(plugin_folders(plugins)), CONF)


def found_conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The folders of `conf_folders` that still exist, for a stored run; imports nothing of the
    named plugins."""
    folders = [*map(Path, plugin_folders(plugins)), *import_installed("tables")]
    return (*_confs(folders), CONF)


def load_plugins(folders: Sequence[str]) -> list[Path]:
    """Import every module of each folder and of installed plugins; returns their `conf` folders.

    Raises UsageError, one line, if a folder does not exist, cannot be imported or has the name of
    another plugin.
    """
    installed = import_installed()  # first: a name clash must blame the user's plugin
    named = [_load_folder(Path(folder).resolve(), f"plugins={folder}") for folder in folders]
    return _confs([*named, *installed])


def _confs(folders: Sequence[Path]) -> list[Path]:
    return [folder / "conf" for folder in folders if (folder / "conf").is_dir()]


@cache
def import_installed(part: str = "") -> tuple[Path, ...]:
    """Import the installed plugins, gistmill's own included; returns their folders. `part`: the
    only subfolder of our own modules to import; `tables` alone saves a command that reads a
    warehouse a fifth of a second."""
    packages = []
    for entry in importlib.metadata.entry_points(group=_GROUP):
        name = f"the installed plugin {entry.name} ({entry.value})"
        is_ours = entry.value == "stages"
        load = partial(_load, entry, part)
        packages.append(load() if is_ours else _in_one_line(name, load))
    return tuple(Path(next(iter(package.__path__))) for package in packages)


def _load(entry: EntryPoint, part: str) -> ModuleType:
    package: ModuleType = entry.load()
    import_all(importlib.import_module(f"{entry.value}.{part}") if part else package)
    return package


def import_all(package: ModuleType) -> None:
    for folder in package.__path__:
        for file in _files(Path(folder), "py"):
            parts = file.relative_to(folder).with_suffix("").parts
            importlib.import_module(".".join([package.__name__, *parts]).removesuffix(".__init__"))


def _files(folder: Path, *endings: str) -> list[Path]:
    """The files with these endings in a package and its subfolders, with or without an __init__.py.
    Left out are pytest's files (test_*.py, conftest.py) and paths that are no importable names,
    such as .venv."""
    return [
        file
        for ending in endings
        for file in sorted(folder.rglob(f"*.{ending}"))
        if not file.name.startswith(("test_", "conftest."))
        and all(map(str.isidentifier, file.relative_to(folder).with_suffix("").parts))
    ]


def _load_folder(folder: Path, word: str) -> Path:
    """Import a plugin's modules once; returns the folder. Raises UsageError naming `word`."""
    name = folder.name
    if not folder.is_dir():
        raise UsageError(f"{word}: no such folder; name one that holds Python modules")
    if not name.isidentifier():
        raise UsageError(f"{word}: {name!r} cannot be imported; name the folder like my_plugin")
    if name not in _FOLDERS:
        _in_one_line(word, partial(_import_folder, name, folder))
        _FOLDERS[name] = folder
    elif _FOLDERS[name] != folder:
        raise UsageError(f"{word}: {_FOLDERS[name]} has the same name; rename one of the folders")
    return folder


def _import_folder(name: str, folder: Path) -> None:
    """Import the folder's modules, with or without an __init__.py. After a failure none stays
    imported, so that the import can be tried again."""
    importlib.invalidate_caches()
    parent = ModuleSpec(PARENT, None, is_package=True)
    sys.modules.setdefault(PARENT, importlib.util.module_from_spec(parent))
    spec = PathFinder.find_spec(f"{PARENT}.{name}", [str(folder.parent)])
    assert spec is not None, "any folder is at least a namespace package"
    package = importlib.util.module_from_spec(spec)
    before = {*sys.modules}
    sys.modules[spec.name] = package
    with contained() as raised:
        if spec.loader is not None:
            spec.loader.exec_module(package)
        import_all(package)
        return
    for module in {*sys.modules} - before:
        if module.startswith(spec.name):
            del sys.modules[module]
    assert raised.error is not None
    raise raised.error


def _in_one_line(plugin: str, load: Callable[[], Any]) -> Any:
    """The result of `load`. An exception of the plugin's code becomes a UsageError with its
    line."""
    with contained() as raised:
        return load()
    if isinstance(raised.error, UsageError):
        raise UsageError(f"{plugin}: {raised.error}") from None
    raise UsageError(f"{plugin}: cannot be imported: {raised.line()}; fix it") from None


def loaded_folders() -> list[Path]:
    return [*_FOLDERS.values()]


def pickle_with_plugins(content: Any) -> bytes:
    """Pickle an object for workers, with the modules and .sql files of the loaded plugins: the
    workers' machines need not have a plugin's folder.

    Ray's own `py_modules` are set once, when a process joins Ray, so a second run in a notebook
    could not add a plugin. Classes pickled by value would not be registered in the worker.
    """
    plugins = {
        folder.name: {
            str(file.relative_to(folder)): file.read_bytes() for file in _files(folder, "py", "sql")
        }
        for folder in loaded_folders()
    }
    return pickle.dumps((plugins, pickle.dumps(content)))


def unpickle_with_plugins(pickled: bytes) -> Any:
    """Import the plugins in a pickle of `pickle_with_plugins`, then unpickle its object.

    The pickle comes from this run's driver through Ray, where anyone who can write can execute code
    anyway; nothing that a warehouse, a corpus or a server holds is ever unpickled. Raises
    UsageError, with the machine's name, if a plugin or one of its imports is not installed there.
    """
    plugins, content = pickle.loads(pickled)
    try:
        with tempfile.TemporaryDirectory(prefix="gistmill-plugin-") as parent:
            for name in plugins.keys() - _FOLDERS.keys():
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
