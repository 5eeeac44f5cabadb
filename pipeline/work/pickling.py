"""Pickle what workers execute, together with the plugins that have its classes: their machines need
not have a plugin's folder."""

import pickle
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_folder, loaded_folders, plugin_files


@dataclass(frozen=True)
class Plugin:
    """A plugin's modules and .sql files by relative path, to be sent to another machine."""

    name: str
    files: Mapping[str, bytes]


def pickle_with_plugins(what: Any) -> bytes:
    """`what`, pickled together with the loaded plugins, whose classes it may contain."""
    plugins = [Plugin(folder.name, _contents(folder)) for folder in loaded_folders()]
    return pickle.dumps((plugins, pickle.dumps(what)))


def _contents(folder: Path) -> dict[str, bytes]:
    files = [*plugin_files(folder, "py"), *plugin_files(folder, "sql")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def unpickle_with_plugins(content: bytes) -> Any:
    """Unpickle what `pickle_with_plugins` made, once its plugins are imported.

    It comes from this run's own driver through Ray, where whoever can write can execute code
    anyway; nothing that a warehouse, a corpus or a server holds is ever unpickled. Raises
    UsageError, with the machine's name, where a plugin, or what it imports, is not installed there.
    """
    plugins, what = pickle.loads(content)
    try:
        with tempfile.TemporaryDirectory(prefix="gistmill-plugin-") as place:
            known = {folder.name for folder in loaded_folders()}
            for plugin in plugins:
                if plugin.name not in known:
                    load_folder(_written(plugin, Path(place)), f"plugins={plugin.name}")
        return pickle.loads(what)
    except (UsageError, ImportError) as error:
        raise UsageError(
            f"on the machine {platform.node()}: {error}; install there what plugins need"
        ) from None


def _written(plugin: Plugin, place: Path) -> Path:
    """The plugin's folder, with its files, which are needed while it is imported."""
    folder = place.resolve() / plugin.name
    folder.mkdir()  # a plugin may have no modules, only configuration
    for path, text in plugin.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder
