"""The prompt families stored with a run: runs/<name>/families/<hash>.json.

Each launch stores its own, so an edit of a template afterwards does not change what was sent.
"""

import json
from dataclasses import asdict
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.core.settings import sha
from pipeline.families.family import Family
from pipeline.files.place import commit, list_paths, write
from pipeline.store.shards.damaged_files import read_parsed

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
    """The families of the run's launches, and an error for each file that cannot be read or whose
    content does not match its name."""
    families: list[Family] = []
    damaged: list[DamagedError] = []
    for file in sorted(list_paths(run / "families", "*.json"), key=str):
        try:
            families.append(read_parsed(file, partial(_family, file), _FIX))
        except DamagedError as error:
            damaged.append(error)
    return families, damaged


def _family(file: UPath, content: bytes) -> Family:
    """Parse a stored family and check its name. Raises ValueError."""
    kept = _KEPT.validate_json(content)
    if sha(kept, 16) != file.stem:
        raise ValueError("not what the run has kept under this name")
    files = {name: f"{file}: {name}" for name in kept.get("sources", ())}
    family: Family = _FAMILY.validate_python({**kept, "folder": str(file), "files": files})
    return family


_KEPT, _FAMILY = TypeAdapter(dict[str, Any]), TypeAdapter(Family)
