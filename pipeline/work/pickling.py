"""Pickle what workers execute, together with the plugins that have its classes: their machines need
not have a plugin's folder."""

import pickle
import platform
import tempfile
from pathlib import Path
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_folder, loaded_folders, plugin_files


def pickle_with_plugins(what: Any) -> bytes:
    """`what`, pickled together with the modules and .sql files of the loaded plugins, whose classes
    it may contain."""
    plugins = {
        folder.name: {
            str(file.relative_to(folder)): file.read_bytes()
            for ending in ("py", "sql")
            for file in plugin_files(folder, ending)
        }
        for folder in loaded_folders()
    }
    return pickle.dumps((plugins, pickle.dumps(what)))


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
            for name in (name for name in plugins if name not in known):
                folder = Path(place).resolve() / name
                folder.mkdir()  # a plugin may have no modules, only configuration
                for path, text in plugins[name].items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(text)
                load_folder(folder, f"plugins={name}")
        return pickle.loads(what)
    except (UsageError, ImportError) as error:
        raise UsageError(
            f"on the machine {platform.node()}: {error}; install there what plugins need"
        ) from None
