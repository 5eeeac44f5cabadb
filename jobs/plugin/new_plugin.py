"""`gistmill plugin new`: a folder with a plugin that works, and its test."""

import importlib.util
import keyword
import re
from collections.abc import Iterator
from pathlib import Path

from jobs.warehouse.ls import listing
from pipeline.core.errors import UsageError
from pipeline.core.rows import RECORDS
from pipeline.work.measure_names import MEASURES, why_no_measure
from pipeline.work.stage import STAGES

_TEMPLATES = Path(__file__).parent / "templates"
KINDS = tuple(sorted(folder.name for folder in _TEMPLATES.iterdir()))
_LEGAL = re.compile(r"[a-z][a-z0-9_]*")


def new_plugin(name: str, kind: str) -> list[Path]:
    """Write the folder `name` with a plugin of this kind, the templates' `my_plugin` and `MyPlugin`
    replaced by its name; returns its files.

    Raises UsageError for a folder that exists, and for a name that is no small identifier or is
    that of a Python module or of something of ours.
    """
    _refuse_unusable(name)
    if kind in ("metric", "judge") and (why := why_no_measure(name)):
        raise UsageError(f"{name}: no {kind} can have this name: {why}")
    class_name = "".join(map(str.capitalize, name.split("_")))
    templates = sorted(file for file in (_TEMPLATES / kind).rglob("*") if file.is_file())
    made = []
    for template in templates:
        path = template.relative_to(_TEMPLATES / kind).as_posix().removesuffix(".txt")
        file = Path(name) / path.replace("my_plugin", name)
        text = template.read_text(encoding="utf-8").replace("my_plugin", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("MyPlugin", class_name), encoding="utf-8")
        made.append(file)
    return made


def _refuse_unusable(name: str) -> None:
    if not _LEGAL.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be imported: write small letters, digits and _")
    if Path(name).exists():
        raise UsageError(f"{name}: exists already; give another name")
    if what := next((what for what, own in _names() if own == name), None):
        raise UsageError(f"{name}: one of ours has this name ({what}); give another one")
    if importlib.util.find_spec(name):
        raise UsageError(f"{name}: a Python module has this name; give another one")


def _names() -> Iterator[tuple[str, str]]:
    """The kind and name of all that there is without plugins."""
    for group, rows in listing(None, None).items():
        yield from ((group, row["name"]) for row in rows)
    for stage, kinds in STAGES.items():
        yield from (("stages", name) for name in (stage, *kinds))
    yield from (("tables", name) for name in RECORDS)
    yield from (("measures", name) for name in MEASURES)
