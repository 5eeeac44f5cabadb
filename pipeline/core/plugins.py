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
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.core.errors import UsageError, contained
from pipeline.core.settings import CONF

_GROUP = "gistmill.plugins"
PARENT = "gistmill_plugins"  # the package of all that are loaded from folders
_PLACES: dict[str, Path] = {}  # package name -> folder, of plugins loaded by this process


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
    places = [*map(Path, plugin_folders(plugins)), *import_installed("tables")]
    return (*(place / "conf" for place in places if (place / "conf").is_dir()), CONF)


def load_plugins(folders: Sequence[str]) -> list[Path]:
    """Import every module of each folder and of installed plugins; returns their `conf` folders.

    Raises UsageError, a single line, for a folder that does not exist, cannot be imported or has
    the name of another plugin.
    """
    installed = import_installed()  # first: a plugin that takes a name of ours is the one to change
    found = [load_folder(Path(folder).resolve(), f"plugins={folder}") for folder in folders]
    return [place / "conf" for place in [*found, *installed] if (place / "conf").is_dir()]


@cache
def import_installed(part: str = "") -> tuple[Path, ...]:
    """Import the plugins among installed packages, gistmill's own included; returns their
    folders. `part`: the folder of our own of which the modules are enough: `tables`, say, to a
    command that reads a warehouse, which takes a fifth of a second less by that."""
    places = []
    for entry in importlib.metadata.entry_points(group=_GROUP):
        is_ours = entry.value == "stages"
        place = f"the installed plugin {entry.name} ({entry.value})"
        package = _loaded(entry, part) if is_ours else _called(place, partial(_loaded, entry))
        places.append(Path(next(iter(package.__path__))))
    return tuple(places)


def _loaded(entry: EntryPoint, part: str = "") -> ModuleType:
    package: ModuleType = entry.load()
    import_all(importlib.import_module(f"{entry.value}.{part}") if part else package)
    return package


def import_all(package: ModuleType) -> None:
    """Import every module below a package, which registers what it defines."""
    for folder in package.__path__:
        for file in plugin_files(Path(folder), "py"):
            parts = file.relative_to(folder).with_suffix("").parts
            importlib.import_module(".".join([package.__name__, *parts]).removesuffix(".__init__"))


def plugin_files(folder: Path, ending: str) -> list[Path]:
    """The files of a package and its subfolders that end so, with or without an __init__.py. Paths
    that are not importable names, such as a virtual environment in .venv, are left out, and
    pytest's files (test_*.py, conftest.py)."""
    files = sorted(folder.rglob(f"*.{ending}"))
    files = [f for f in files if not f.name.startswith(("test_", "conftest."))]
    return [
        f for f in files if all(map(str.isidentifier, f.relative_to(folder).with_suffix("").parts))
    ]


def load_folder(folder: Path, place: str) -> Path:
    """Import a plugin's modules once; returns the folder. Raises UsageError naming `place`."""
    name = folder.name
    if not folder.is_dir():
        raise UsageError(f"{place}: no such folder; name one that holds Python modules")
    if not name.isidentifier():
        raise UsageError(f"{place}: {name!r} cannot be imported; name the folder like my_plugin")
    if name not in _PLACES:
        _called(place, partial(_import_folder, name, folder))
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
    with contained() as raised:
        if spec.loader is not None:
            spec.loader.exec_module(package)
        import_all(package)
        return
    for module in {*sys.modules} - known:
        if module.startswith(spec.name):
            del sys.modules[module]
    assert raised.error is not None
    raise raised.error


def _called(place: str, load: Callable[[], Any]) -> Any:
    """The result of `load`. An exception of the plugin's code becomes a UsageError with its
    line."""
    with contained() as raised:
        return load()
    if isinstance(raised.error, UsageError):
        raise UsageError(f"{place}: {raised.error}") from None
    raise UsageError(f"{place}: cannot be imported: {raised.line()}; fix it") from None


def loaded_folders() -> list[Path]:
    """The folders of the plugins that `plugins=` named in this process."""
    return [*_PLACES.values()]
