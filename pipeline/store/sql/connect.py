"""DuckDB views over the committed files of a warehouse. The only file that imports duckdb.

`answers`, `scores` ... show one run, `all_answers`, `all_scores` ... every run of the warehouse,
each row once per run that planned it (run_views.py). A table without files is an empty view
with typed columns.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel
from upath import UPath

from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.registry import nearest
from pipeline.files.place import (
    AnyPath,
    as_path,
    exists,
    is_remote,
    list_paths,
    map_in_threads,
    modified_at,
    read,
)
from pipeline.store.runs.people import ALL_PEOPLE, people_rows
from pipeline.store.runs.planned_units import UNITS, check_planned
from pipeline.store.shards.damaged_files import MOVE_STEP, DamagedFiles, damaged_inside, read_parsed
from pipeline.store.shards.layout import check_layout
from pipeline.store.sql.contracts import derived, sections
from pipeline.store.sql.python_rows import create_table
from pipeline.store.sql.run_views import run_views
from pipeline.store.sql.shard_views import shard_views, sql_list
from pipeline.store.sql.sql_sandbox import lock, sql_error

_STEPS = pa.schema(
    [
        ("step_id", pa.string()),
        ("stage", pa.string()),
        ("version", pa.int64()),
        ("method", pa.string()),
        ("repeat", pa.int64()),
        ("settings", pa.string()),
        ("engine", pa.string()),
        ("prompts", pa.string()),
        ("upstream", pa.list_(pa.string())),
    ]
)
_FILES = pa.schema([("file", pa.string())])
_LEFT_OUT = pa.schema([("file", pa.string()), ("why", pa.string())])
_OF_STATEMENTS = (  # errors that are no file's fault
    duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException,
    duckdb.ConversionException, duckdb.OutOfRangeException,
)  # fmt: skip


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
    warehouse: AnyPath, run: str | None = None, unsafe: bool = False
) -> duckdb.DuckDBPyConnection:
    """An in-memory connection with the views of one run, by default the latest.

    It sees the files committed so far; later ones need a new connection. It is locked
    (sql_sandbox.py) unless `unsafe`. Damaged files are left out with a LeftOutWarning each; the
    view `left_out` has them. Raises UsageError where the warehouse or the run does not exist, or
    the SQL of a table is wrong, DamagedError where the run's planned inputs cannot be read.
    """
    folder, left_out = as_path(warehouse), DamagedFiles()
    left_out.unless_damaged(lambda: check_layout(folder), None)
    name = run_name(folder, run)
    connection = duckdb.connect()
    _without_progress_bar(connection)
    connection.execute("set parquet_metadata_cache = true")  # else every view reads all footers
    tables, steps, files = shard_views(connection, folder, left_out)
    _view_of(connection, "raw_steps", _STEPS, _step_rows(folder, left_out))
    planned = left_out.sound(sorted(_planned_files(folder)), check_planned)
    _planned_view(connection, planned)
    for statement in run_views(tables, name, steps):
        connection.execute(statement)
    _create_derived(connection, tables)
    files += planned
    _register_files(connection, files)
    _view_of(connection, "all_people", ALL_PEOPLE, people_rows(folder, left_out))
    quoted = name.replace("'", "''")
    connection.execute(f"create view people as from all_people where run = '{quoted}'")
    _view_of(connection, "left_out", _LEFT_OUT, left_out.rows)
    if not unsafe:
        lock(connection, (address for file in files for address in _addresses(file)))
    return connection


def _create_derived(connection: Any, tables: Mapping[str, Any]) -> None:
    """Raises UsageError, naming file and section, for SQL of a table that DuckDB refuses."""
    try:
        for statement in derived(tables):
            connection.execute(statement)
    except _OF_STATEMENTS:
        for place, statement in sections(tables):
            try:
                connection.execute(statement)
            except _OF_STATEMENTS as error:
                raise UsageError(f"{place}: {str(error).splitlines()[0]}; correct it") from None
        raise


def _without_progress_bar(connection: Any) -> None:
    """Switch the progress bar off, if it is on: in Jupyter without ipywidgets DuckDB has none and
    refuses the setting."""
    ((is_on,),) = connection.execute("select current_setting('enable_progress_bar')").fetchall()
    if is_on:
        connection.execute("set enable_progress_bar = false")


def query(connection: Any, statement: str) -> list[dict[str, Any]]:
    """The rows of a user's query. Raises UsageError with DuckDB's error and hints, and DamagedError
    if a file caused it: `connect` had read only the footers."""
    with errors_of(connection):
        done = connection.execute(statement)
        rows = [] if done is None else done.fetchall()
    if done is None:
        raise UsageError("sql: empty query; write one, such as 'from documents limit 3'")
    names = _unique([column[0] for column in connection.description or ()])
    return [dict(zip(names, row, strict=True)) for row in rows]


@contextmanager
def errors_of(connection: Any) -> Iterator[None]:
    """Turn DuckDB's errors in the `with` block into UsageError, or DamagedError if a file caused
    them."""
    try:
        yield
    except duckdb.Error as error:
        if damaged := _to_blame(error, _files_of(connection)):
            raise damaged from None
        raise sql_error(str(error)) from None


@contextmanager
def errors_of_arrow() -> Iterator[None]:
    """Turn errors of a later batch, such as of a value that is no number, back into DuckDB's
    errors: they come through Arrow as an OSError without a number."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise duckdb.Error(str(error)) from None


def _to_blame(error: duckdb.Error, files: list[UPath]) -> DamagedError | None:
    """The first damaged file of those that the views read, if a file may have caused the error;
    else None."""
    if isinstance(error, duckdb.PermissionException):  # raised for a missing path
        files = [file for file in files if not exists(file)]
    return None if isinstance(error, _OF_STATEMENTS) else damaged_inside(files)


def _register_files(connection: Any, files: Iterable[UPath]) -> None:
    """Keep the names of the files that the views read, for `query`."""
    create_table(connection, "files_rows", _FILES, [{"file": str(file)} for file in files])


def _files_of(connection: Any) -> list[UPath]:
    return [as_path(file) for (file,) in connection.execute("from files_rows").fetchall()]


def _unique(names: list[str]) -> list[str]:
    """The names made unique: a second column `name` becomes `name_1`, as in DuckDB's tables."""
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [
        f"{name}_{count}" if count else name for name, count in zip(names, earlier, strict=True)
    ]


def run_name(warehouse: AnyPath, run: str | None) -> str:
    """`run` if the warehouse has it; for None, the run that was started last.

    Raises UsageError if the warehouse has no runs, or not this one.
    """
    folder = as_path(warehouse)
    with suppress(DamagedError):  # `connect` warns of it
        check_layout(folder)
    files = _planned_files(folder)
    if not files:
        raise UsageError(f"{folder}: no run there; start one with gistmill run, or set warehouse=")
    found = [file for file in files if run in (None, file.parent.name)]
    if not found:
        names = sorted(file.parent.name for file in files)
        raise UsageError(f"run={run}: not in {folder}; it has {nearest(run or '', names)}")
    check_planned(found[-1])
    return str(found[-1].parent.name)


def readable_run(warehouse: AnyPath) -> str:
    """The last run whose planned inputs can be read. Raises as `run_name` does."""
    sound = DamagedFiles().sound(_planned_files(as_path(warehouse)), check_planned)
    return str(sound[-1].parent.name) if sound else run_name(warehouse, None)


def _planned_files(folder: UPath) -> list[UPath]:
    """The planned inputs of every run, in the order of their last start."""
    return sorted(list_paths(folder / "runs", "*/units.parquet"), key=modified_at)


def _addresses(file: UPath) -> set[str]:
    """The names that DuckDB may have for a file: the one it was given, and that in a remote
    filesystem's listing."""
    listed = file.fs.unstrip_protocol(file.path) if is_remote(file) else str(file)
    return {str(file), listed}


def _view_of(connection: Any, name: str, columns: Any, rows: list[dict[str, Any]]) -> None:
    create_table(connection, f"{name}_rows", columns, rows)
    connection.execute(f"create view {name} as from {name}_rows")


def _step_rows(folder: UPath, left_out: DamagedFiles) -> list[dict[str, Any]]:
    files = sorted(list_paths(folder / "steps", "*.json"))
    rows = [left_out.unless_damaged(partial(_step_row, file), None) for file in files]
    return [row for row in rows if row is not None]


def _step_row(file: UPath) -> dict[str, Any]:
    step = read_parsed(file, _Description.model_validate_json, MOVE_STEP).model_dump()
    texts = {k: json.dumps(step[k], sort_keys=True) for k in ("settings", "engine", "prompts")}
    return {**step, **texts, "step_id": file.stem}


def _planned_view(connection: Any, files: Sequence[UPath]) -> None:
    """Create the view of all planned inputs: run, step_id, unit, document_id, question_id."""
    if is_remote(files[0]):
        parts = map_in_threads(_units_of_run, files)
        connection.register("all_planned", pa.concat_tables(parts))
    else:
        source = f"read_parquet({sql_list(files)}, union_by_name = true, filename = true)"
        columns = f"{', '.join(UNITS.names)}, parse_path(filename)[-2] as run"
        connection.execute(f"create view all_planned as select {columns} from {source}")


def _units_of_run(file: UPath) -> Any:
    rows = pq.read_table(io.BytesIO(read(file)), schema=UNITS)
    return rows.append_column("run", pa.array([file.parent.name] * rows.num_rows, pa.string()))
