"""`gistmill prompts check`: checks one prompt family, or all of gistmill and of plugins."""

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.family_check import check_family
from pipeline.plugins import load_plugins, plugin_folders
from pipeline.settings import CONF

_PLUGINS = "plugins="


def check_prompts(words: Sequence[str]) -> list[str]:
    """One line per failure. `words`: a family's folder, and `plugins=A,B`, whose prompts are
    checked, too. Without a folder, checks the families of all `conf` folders.

    Raises UsageError where the folder is no family, or a plugin cannot be imported.
    """
    folders = [Path(word) for word in words if not word.startswith(_PLUGINS)]
    plugins = [word.removeprefix(_PLUGINS) for word in words if word.startswith(_PLUGINS)]
    if len(folders) > 1 or len(plugins) > 1:
        raise UsageError("prompts check: takes one FOLDER, and plugins=FOLDER,FOLDER once")
    named = plugin_folders(plugins[0] if plugins else None)
    roots = [conf / "prompts" for conf in [*load_plugins(named), CONF]]
    every = sorted(file.parent for root in roots for file in root.glob("*/family.yaml"))
    return [line for family in folders or every for line in check_family(family, roots)]
