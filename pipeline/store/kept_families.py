"""The prompt families of a run, kept with it: runs/<name>/families/<hash>.json.

Each launch keeps its own, so an edit of a template afterwards does not change what was sent.
"""

import json
from dataclasses import asdict
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from upath import UPath

from pipeline.errors import DamagedError
from pipeline.family import Family
from pipeline.place import commit, listed, write
from pipeline.settings import sha
from pipeline.store.listing import parsed

_HERE = ("folder", "files")  # fields that name files of the machine that started the run
_FIX = "start the run again, which keeps its templates anew"


def keep_family(run: UPath, family: Family) -> None:
    """Write every template and setting of the family, unless the run has them. Raises
    StorageError."""
    kept = {name: value for name, value in asdict(family).items() if name not in _HERE}
    content = json.dumps(kept, indent=1, sort_keys=True).encode()
    file = run / "families" / f"{sha(kept, 16)}.json"
    if not commit(file, content):
        write(file, content)  # instead of a damaged one


def kept_families(run: UPath) -> tuple[list[Family], list[DamagedError]]:
    """The families of the run's launches, and the files that cannot be read or do not hold what
    their name says."""
    families: list[Family] = []
    damaged: list[DamagedError] = []
    for file in sorted(listed(run / "families", "*.json"), key=str):
        try:
            families.append(parsed(file, partial(_family, file), _FIX))
        except DamagedError as error:
            damaged.append(error)
    return families, damaged


def _family(file: UPath, content: bytes) -> Family:
    """Raises ValueError."""
    kept = _KEPT.validate_json(content)
    if sha(kept, 16) != file.stem:
        raise ValueError("not what the run has kept under this name")
    files = {name: f"{file}: {name}" for name in kept.get("sources", ())}
    family: Family = _FAMILY.validate_python({**kept, "folder": str(file), "files": files})
    return family


_KEPT, _FAMILY = TypeAdapter(dict[str, Any]), TypeAdapter(Family)
