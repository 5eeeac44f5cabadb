"""Connect to a warehouse: its views (views.py), and those of the files in `steps` and `runs`."""

import json
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from upath import UPath

from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.registry import nearest
from pipeline.files.storage import AnyPath, as_path, is_remote, list_paths, modified_at
from pipeline.store.runs.planned_units import KNOWN_ANSWERS, UNITS, check_planned, planned_files
from pipeline.store.runs.run_folder import ALL_PEOPLE, people_rows
from pipeline.store.shards.damaged_files import MOVE_STEP, DamagedFiles, read_parsed
from pipeline.store.shards.layout import check_layout
from pipeline.store.sql.connection import Connection, View, errors_of
from pipeline.store.sql.sandbox import addresses, lock
from pipeline.store.sql.views import LEFT_OUT, run_views, shard_views

_STEPS = pa.schema(
    [
        ("step_id", pa.string()), ("stage", pa.string()), ("version", pa.int64()),
        ("method", pa.string()), ("repeat", pa.int64()), ("settings", pa.string()),
        ("engine", pa.string()), ("prompts", pa.string()), ("upstream", pa.list_(pa.string())),
    ]
)  # fmt: skip
_LEFT_OUT = pa.schema([("file", pa.string()), ("why", pa.string())])


class _Description(BaseModel):
    """The content of steps/<step_id>.json, as far as views show it."""

    stage: str
    version: int
    settings: Any
    prompts: Any
    engine: Any
    method: str | None
    repeat: int
    upstream: list[str]


def connect(
    warehouse: AnyPath,
    run: str | None = None,
    unsafe: bool = False,
    memory_limit: str | None = None,
) -> Connection:
    """As `pipeline.store.connect`. A view made of a table's wrong SQL raises UsageError when a
    statement names it; with `unsafe`, at once."""
    folder, left_out = as_path(warehouse), DamagedFiles()
    left_out.unless_damaged(lambda: check_layout(folder), None)
    name = run_name(folder, run)
    connection = Connection()
    if memory_limit is not None:
        with errors_of(connection):
            connection.raw.execute("set memory_limit = ?", [memory_limit])
    connection.raw.execute("set parquet_metadata_cache = true")  # else every view reads all footers
    planned = left_out.sound(sorted(planned_files(folder)), check_planned)
    connection.files += planned
    tables, is_small = shard_views(connection, folder, left_out)
    files = sorted(list_paths(folder / "steps", "*.json"))
    steps = [left_out.unless_damaged(partial(_step_row, file), None) for file in files]
    connection.add_rows("raw_steps", _STEPS, [row for row in steps if row])
    source = f"read_parquet({addresses(planned)}, union_by_name = true, filename = true)"
    columns = f"{', '.join(UNITS.names)}, parse_path(filename)[-2] as run"
    kind = "table" if is_remote(folder) else "view"  # a remote file is fetched once
    connection.add(View(f"create {kind} all_planned as select {columns} from {source}"))
    for view in run_views(tables, name, is_small):
        connection.add(view)
    connection.add_rows("all_people", ALL_PEOPLE, people_rows(folder, left_out))
    connection.add_rows("left_out", _LEFT_OUT, left_out.rows, LEFT_OUT)
    if unsafe:
        connection.make_all()
        vars(connection)["execute"] = connection.raw.execute  # whose tables are its caller's, too
    else:
        lock(connection.raw, connection.files)
    return connection


def run_name(warehouse: AnyPath, run: str | None) -> str:
    """`run` if the warehouse has it; for None, the run that was started last. Raises UsageError if
    the warehouse has no runs, or not this one."""
    folder = as_path(warehouse)
    with suppress(DamagedError):  # `connect` warns of it
        check_layout(folder)
    files = _by_last_start(folder)
    if not files:
        raise UsageError(f"{folder}: no run there; start one with gistmill run, or set warehouse=")
    of_name = [file for file in files if run in (None, file.parent.name)]
    if not of_name:
        names = sorted(file.parent.name for file in files)
        raise UsageError(f"run={run}: not in {folder}; it has {nearest(run or '', names)}")
    check_planned(of_name[-1])
    return str(of_name[-1].parent.name)


def readable_run(warehouse: AnyPath) -> str:
    """The last run whose planned inputs can be read. Raises as `run_name` does."""
    sound = DamagedFiles().sound(_by_last_start(as_path(warehouse)), check_planned)
    return str(sound[-1].parent.name) if sound else run_name(warehouse, None)


def _by_last_start(folder: UPath) -> list[UPath]:
    """The planned inputs of every run, by last start. Audits come first, as their results are in
    the report of the run that they audit."""
    audits = {file.parent for file in list_paths(folder / "runs", f"*/{KNOWN_ANSWERS}")}
    return sorted(
        planned_files(folder), key=lambda file: (file.parent not in audits, modified_at(file))
    )


def _step_row(file: UPath) -> dict[str, Any] | None:
    described = read_parsed(file, _Description.model_validate_json, MOVE_STEP)
    if described is None:
        return None
    step = described.model_dump()
    texts = {k: json.dumps(step[k], sort_keys=True) for k in ("settings", "engine", "prompts")}
    return {**step, **texts, "step_id": file.stem}
