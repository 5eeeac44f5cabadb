"""`gistmill verify`: reads every page of a warehouse's files."""

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from upath import UPath

from jobs.output.cells import Part, counted
from pipeline.core.errors import DamagedError, LeftOutWarning
from pipeline.core.settings import YAML_LOADER
from pipeline.files.parquet import read_parquet
from pipeline.files.storage import list_paths, read
from pipeline.store import connect
from pipeline.store.sql.connect import readable_run
from pipeline.store.sql.connection import query

_FILES = (
    "tables/*/*/*.parquet", "compacted/*.parquet", "compacted/*/*.parquet", "removed/*.parquet",
    "runs/*/units.parquet", "runs/*/people/*.parquet", "gistmill.json", "steps/*.json",
    "shared/*/*.json", "runs/*/config.yaml", "runs/*/provenance.json",
)  # fmt: skip


def verify(warehouse: UPath) -> dict[str, Any]:
    """Read every file; returns the number of `files`, and the `damaged` ones, each with the reason
    and advice (`why`).

    Raises UsageError if there is no warehouse with a run, StorageError.
    """
    damaged = _left_out(warehouse, readable_run(warehouse))
    files = [file for pattern in _FILES for file in list_paths(warehouse, pattern)]
    for file in (file for file in files if str(file) not in damaged):
        try:
            _parse(file)
        except (ValueError, yaml.YAMLError) as error:
            damaged[str(file)] = f"{' '.join(str(error).split())}; put it back from a copy"
        except FileNotFoundError:  # compacted and deleted meanwhile
            continue
    return {
        "files": len(files),
        "damaged": [{"file": file, "why": why} for file, why in sorted(damaged.items())],
    }


def _left_out(warehouse: UPath, run: str) -> dict[str, str]:
    """The files that reading verbs leave out or cannot do without, by name, with the reasons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        try:
            with connect(warehouse, run) as connection:
                return {row["file"]: row["why"] for row in query(connection, "from left_out")}
        except DamagedError as error:
            return {error.file: error.why}


def _parse(file: UPath) -> None:
    """Raise ValueError (also Arrow's errors) or YAMLError if the file is damaged."""
    content = read(file)
    if file.suffix == ".parquet":
        read_parquet(content)
    elif file.suffix == ".yaml":
        yaml.load(content, YAML_LOADER)
    else:
        json.loads(content)


def verified_lines(found: Mapping[str, Any]) -> Iterator[Part]:
    yield from (f"{row['file']}: {row['why']}" for row in found["damaged"])
    yield f"checked {counted(found['files'], 'file')}"
