"""Writes a folder with a working plugin: a copy of one in templates/."""

import keyword
import re
from pathlib import Path

from pipeline.core.errors import UsageError

_TEMPLATES = Path(__file__).parent / "templates"
KINDS = tuple(sorted(folder.name for folder in _TEMPLATES.iterdir()))


def new_plugin(name: str, kind: str) -> list[Path]:
    """Write the folder `name`, a copy of the template `kind` with its `my_plugin` and `MyPlugin`
    replaced; returns its files. Raises UsageError for a folder that exists, or no identifier."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be imported: write small letters, digits and _")
    if Path(name).exists():
        raise UsageError(f"{name}: exists already; give another name")
    class_name = "".join(map(str.capitalize, name.split("_")))
    files = []
    for template in sorted(file for file in (_TEMPLATES / kind).rglob("*") if file.is_file()):
        path = template.relative_to(_TEMPLATES / kind).as_posix().removesuffix(".txt")
        file = Path(name) / path.replace("my_plugin", name)
        text = template.read_text(encoding="utf-8").replace("my_plugin", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("MyPlugin", class_name), encoding="utf-8")
        files.append(file)
    return files
