"""Small JSON files, one object each."""

import json
from collections.abc import Mapping
from typing import Any

from upath import UPath

from pipeline.files.place import AnyPath, as_path, read, write


def write_json(path: AnyPath, content: Mapping[str, Any]) -> None:
    """Write or replace the file atomically. Raises StorageError."""
    write(as_path(path), (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def read_object(path: UPath) -> dict[str, Any]:
    """The object in the file; empty if the file is missing, truncated or no JSON object. Raises
    StorageError."""
    try:
        found = json.loads(read(path))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
