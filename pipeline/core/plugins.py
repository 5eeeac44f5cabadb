"""Plugins: a user's own stages, prompts, methods, families and corpora.

A plugin is a folder of Python modules, imported as the package `gistmill_plugins.<folder's name>`,
so that it does not matter what else is importable by that name here or on a worker. Its modules
import one another by `from .module import name`. The `.sql` files of its tables lie beside them
(sql_files.py); its subfolder `conf` has the layout of ours (`conf/method/*.yaml`,
`conf/prompts/<family>/`, `conf/corpus/`, `conf/experiment/`).
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
    """The folders that `plugins=A,B` names."""
    return [folder.strip() for folder in (plugins or "").split(",") if folder.strip()]


@cache
def conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """The `conf` folders of the plugins that `plugins=A,B` names, whose modules are imported once,
    then our own. Raises UsageError as `load_plugins`."""
    return (*load_plugins(plugin_folders(plugins)), CONF)


def found_conf_folders(plugins: str | None) -> tuple[Path, ...]:
    """`conf_folders` of a stored run, without those that are not there any more; of the named
    plugins nothing is imported."""
    folders = [*map(Path, plugin_folders(plugins)), *import_installed("tables")]
    return (*_confs(folders), CONF)


def load_plugins(folders: Sequence[str]) -> list[Path]:
    """Import every module of each folder and of installed plugins; returns their `conf` folders.

    Raises UsageError, a single line, for a folder that does not exist, cannot be imported or has
    the name of another plugin.
    """
    installed = import_installed()  # first: a plugin that takes a name of ours is the one to change
    named = [_load_folder(Path(folder).resolve(), f"plugins={folder}") for folder in folders]
    return _confs([*named, *installed])


def _confs(folders: Sequence[Path]) -> list[Path]:
    return [folder / "conf" for folder in folders if (folder / "conf").is_dir()]


@cache
def import_installed(part: str = "") -> tuple[Path, ...]:
    """Import the plugins among installed packages, gistmill's own included; returns their
    folders. `part`: the folder of our own of which the modules are enough: `tables`, say, to a
    command that reads a warehouse, which takes a fifth of a second less by that."""
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
    """Import every module below a package, which registers what it defines."""
    for folder in package.__path__:
        for file in _files(Path(folder), "py"):
            parts = file.relative_to(folder).with_suffix("").parts
            importlib.import_module(".".join([package.__name__, *parts]).removesuffix(".__init__"))


def _files(folder: Path, *endings: str) -> list[Path]:
    """The files of a package and its subfolders that end so, with or without an __init__.py. Paths
    that are not importable names, such as a virtual environment in .venv, are left out, and
    pytest's files (test_*.py, conftest.py)."""
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
    """Import the folder's modules, whether or not it has an __init__.py; none stays of one that
    cannot be imported, so that it can be tried again."""
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
    """The folders of the plugins that `plugins=` named in this process."""
    return [*_FOLDERS.values()]


def pickle_with_plugins(content: Any) -> bytes:
    """Pickle what workers execute, with the modules and .sql files of the loaded plugins, which
    have its classes: the workers' machines need not have a plugin's folder.

    Ray's own `py_modules` are set once, where a process joins Ray: a second run of a notebook could
    bring no other plugin. Classes pickled by value would register nothing where they arrive.
    """
    plugins = {
        folder.name: {
            str(file.relative_to(folder)): file.read_bytes() for file in _files(folder, "py", "sql")
        }
        for folder in loaded_folders()
    }
    return pickle.dumps((plugins, pickle.dumps(content)))


def unpickle_with_plugins(pickled: bytes) -> Any:
    """Unpickle what `pickle_with_plugins` made, once its plugins are imported.

    It comes from this run's own driver through Ray, where whoever can write can execute code
    anyway; nothing that a warehouse, a corpus or a server holds is ever unpickled. Raises
    UsageError, with the machine's name, where a plugin, or what it imports, is not installed there.
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
