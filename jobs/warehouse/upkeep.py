"""`gistmill rm` deletes a run, whose rows stay for the retention. `gistmill gc` compacts loose
shards, then deletes files that were replaced before the retention. `gistmill verify` reads every
file."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import yaml
from upath import UPath

from jobs.config.options import ReadOptions
from jobs.output.print_tables import Part, counted, print_found
from pipeline.core.errors import DamagedError, LeftOutWarning, UsageError
from pipeline.core.registry import hint
from pipeline.core.settings import YAML_LOADER
from pipeline.files.lease import RUN, holder
from pipeline.files.parquet import read_parquet
from pipeline.files.storage import exists, list_paths, read
from pipeline.store import connect
from pipeline.store.shards.layout import check_layout
from pipeline.store.sql.connect import readable_run
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import RETENTION, collect, compact, run_names

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def run_to_remove(options: ReadOptions) -> str:
    """The named run. Raises UsageError if there is none of that name, or a command executes it."""
    if options.run is None:
        raise UsageError("run= is missing; name the run to delete")
    check_layout(options.warehouse)
    names = run_names(options.warehouse)
    if options.run not in names:
        near = hint(options.run, names)
        raise UsageError(f"run={options.run}: not in {options.warehouse}; {near}")
    if process := holder(options.warehouse / "runs" / options.run, RUN):
        host, _, pid = process.rpartition("-")
        raise UsageError(
            f"run={options.run}: being executed on {host} (process {pid}); stop it first"
        )
    return options.run


def show_gc(options: ReadOptions) -> None:
    """Compact and collect, and print the counts. Raises UsageError if there is no warehouse, or
    another process compacts or collects it now."""
    seconds, warehouse = retention(options.older_than), options.warehouse
    if not any(exists(warehouse / folder) for folder in ("tables", "compacted")):
        raise UsageError(f"warehouse={warehouse}: no warehouse there; set warehouse=")
    compacted = compact(warehouse, least=2)
    freed = collect(warehouse, seconds) if compacted else None
    if compacted is None or freed is None:
        raise UsageError(f"warehouse={warehouse}: another process compacts it now; try again later")
    counts = {"compacted": compacted.shards, "into": compacted.files,
              "deleted": freed.files, "bytes": freed.bytes}  # fmt: skip
    lines = [f"compacted {compacted.shards:,} shards into {compacted.files:,} files",
             f"deleted {freed.files:,} files, {freed.bytes:,} bytes"]  # fmt: skip
    if freed.is_waiting:
        lines.append("what removed runs had planned stays, as a run is at work")
    print_found(counts, lambda _: ["\n".join(lines)], options.as_json)


def retention(text: str | None) -> float:
    """The seconds in `24h`, `30m`, `0` ...; by default a day."""
    if text is None:
        return RETENTION
    if text == "0":
        return 0.0
    parts = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not parts:
        raise UsageError(f"older_than={text}: not a duration; write 24h, 90m or 2d")
    return float(int(parts[1]) * _SECONDS[parts[2]])


_FILES = (
    "tables/*/*/*.parquet", "compacted/*.parquet", "compacted/*/*.parquet", "removed/*.parquet",
    "runs/*/units.parquet", "runs/*/people/*.parquet", "gistmill.json", "steps/*.json",
    "shared/*/*.json", "runs/*/config.yaml", "runs/*/provenance.json",
)  # fmt: skip
_PARSERS: dict[str, Callable[[bytes], Any]] = {
    ".parquet": read_parquet, ".json": json.loads,
    ".yaml": partial(yaml.load, Loader=YAML_LOADER),
}  # fmt: skip


def verify(warehouse: UPath) -> dict[str, Any]:
    """Read every file; returns the number of `files`, and the `damaged` ones, each with the reason
    and advice (`why`). Raises UsageError if there is no warehouse with a run, StorageError."""
    run = readable_run(warehouse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        try:
            with connect(warehouse, run) as connection:
                damaged = {row["file"]: row["why"] for row in query(connection, "from left_out")}
        except DamagedError as error:
            damaged = {error.file: error.why}
    files = [file for pattern in _FILES for file in list_paths(warehouse, pattern)]
    for file in (file for file in files if str(file) not in damaged):
        try:
            _PARSERS[file.suffix](read(file))
        except (ValueError, yaml.YAMLError) as error:  # also Arrow's errors
            damaged[str(file)] = f"{' '.join(str(error).split())}; put it back from a copy"
        except FileNotFoundError:  # compacted and deleted meanwhile
            continue
    return {
        "files": len(files),
        "damaged": [{"file": file, "why": why} for file, why in sorted(damaged.items())],
    }


def verified_lines(verified: Mapping[str, Any]) -> Iterator[Part]:
    """The lines that `gistmill verify` prints of the result of `verify`."""
    yield from (f"{row['file']}: {row['why']}" for row in verified["damaged"])
    yield f"checked {counted(verified['files'], 'file')}"
