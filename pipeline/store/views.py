"""DuckDB views over the committed files of a warehouse. The only file that imports duckdb.

`answers`, `scores` ... show one run, `all_answers`, `all_scores` ... every run of the warehouse,
each row once per run that planned it (store/run_views.py). A table without files is an empty view
with typed columns.
"""

import io
import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import FSSpecHandler, PyFileSystem
from upath import UPath

from pipeline.arrow import schema
from pipeline.errors import UsageError
from pipeline.place import AnyPath, each, is_remote, place
from pipeline.plugins import installed
from pipeline.rows import RECORDS, Call
from pipeline.store.contracts import derived
from pipeline.store.locks import lock
from pipeline.store.run_views import run_views
from pipeline.store.shards import last_attempts

UNITS = pa.schema(
    [(name, pa.string()) for name in ("step_id", "unit", "document_id", "question_id")]
)
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
_SHARDS = pa.schema([(name, pa.string()) for name in ("table_name", "step_id", "unit")])
_NO_FOOTER = "''::varchar as file_name, ''::blob as key, ''::blob as value"
_OF_ALL_ROWS = {"corpus", "step_id", "unit", "document_id", "problem"}  # columns of every table


def connect(
    warehouse: AnyPath, run: str | None = None, unsafe: bool = False
) -> duckdb.DuckDBPyConnection:
    """An in-memory connection with the views of one run, by default the latest.

    It sees the files committed so far; later ones need a new connection. It is locked (locks.py)
    unless `unsafe`. Raises UsageError where the warehouse or the run does not exist.
    """
    folder = place(warehouse)
    name = run_name(folder, run)
    connection = duckdb.connect()
    _without_progress_bar(connection)
    files = _shard_files(folder)
    tables = _tables(files, connection)
    for table, columns in tables.items():
        _raw_view(connection, table, files[table], columns)
    _register(connection, "steps", _STEPS, _step_rows(folder))
    _register(connection, "shards", _SHARDS, _shard_rows(tables, files))
    _planned_view(connection, folder)
    written = [file for table in tables if table != Call.table for file in files[table]]
    _footers_view(connection, written)
    for statement in (*run_views(tables, name), *derived(tables)):
        connection.execute(statement)
    if not unsafe:
        chosen = chain(_unit_files(folder), *files.values())
        lock(connection, (address for file in chosen for address in _addresses(file)))
    return connection


def _without_progress_bar(connection: Any) -> None:
    """Switch the progress bar off, if it is on: in Jupyter without ipywidgets DuckDB has none and
    refuses the setting."""
    ((is_on,),) = connection.execute("select current_setting('enable_progress_bar')").fetchall()
    if is_on:
        connection.execute("set enable_progress_bar = false")


def query(connection: Any, statement: str) -> list[dict[str, Any]]:
    """The rows of a user's query. Raises UsageError with the first line of DuckDB's error."""
    try:
        done = connection.execute(statement)
        rows = [] if done is None else done.fetchall()
    except duckdb.Error as error:
        raise UsageError(f"sql: {str(error).splitlines()[0]}") from None
    if done is None:
        raise UsageError("sql: empty query; write one, such as 'from documents limit 3'")
    names = _unique([column[0] for column in connection.description or ()])
    return [dict(zip(names, row, strict=True)) for row in rows]


def _unique(names: list[str]) -> list[str]:
    """The names made unique: a second column `name` becomes `name_1`, as in DuckDB's tables."""
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [
        f"{name}_{count}" if count else name for name, count in zip(names, earlier, strict=True)
    ]


def run_name(warehouse: AnyPath, run: str | None) -> str:
    """`run` if the warehouse has it; if null, the run that was started last.

    Raises UsageError where the warehouse has no runs, or not this one.
    """
    folder = place(warehouse)
    runs = sorted(
        (f.parent for f in folder.glob("runs/*/units.parquet")),
        key=lambda path: (path / "units.parquet").stat().st_mtime,
    )
    if not runs:
        raise UsageError(f"{folder}: no run there; start one with gistmill run, or set warehouse=")
    names = [path.name for path in runs]
    if run is not None and run not in names:
        raise UsageError(f"run={run}: not in {folder}; it has {', '.join(sorted(names))}")
    return run or names[-1]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _files(files: Iterable[UPath]) -> str:
    return "[" + ", ".join(_text(str(file)) for file in files) + "]"


def _addresses(file: UPath) -> set[str]:
    """How DuckDB may call a file: by the name it was given, or as a remote filesystem lists it."""
    listed = file.fs.unstrip_protocol(file.path) if is_remote(file) else str(file)
    return {str(file), listed}


def _register(connection: Any, name: str, columns: Any, rows: list[dict[str, Any]]) -> None:
    connection.register(f"{name}_rows", pa.Table.from_pylist(rows, schema=columns))
    connection.execute(f"create view raw_{name} as from {name}_rows")


def _shard_files(folder: UPath) -> dict[str, list[UPath]]:
    """The committed shards of every table: those of loaded record classes, and others that the
    warehouse holds (tables of a plugin that is not loaded)."""
    installed()
    stored = [path.name for path in folder.glob("tables/*")]
    names = dict.fromkeys([*RECORDS, *sorted(name for name in stored if name.isidentifier())])
    last = {table: last_attempts(folder.glob(f"tables/{table}/*/*")) for table in names}
    return {table: [found[key][1] for key in sorted(found)] for table, found in last.items()}


def _tables(files: Mapping[str, list[UPath]], connection: Any) -> dict[str, Any]:
    """The tables with their Arrow schemas: of the record class, else of a shard, if that has the
    columns of every record and a view may have the name."""
    found = {table: schema(RECORDS[table]) for table in files if table in RECORDS}
    others = {table: paths for table, paths in files.items() if table not in found and paths}
    taken = _taken(found, connection) if others else set()
    for table, paths in others.items():
        is_free = table not in taken and not table.startswith(("all_", "raw_", "no_"))
        if is_free and table == table.lower():
            columns = _columns(paths)
            found |= {table: columns} if _OF_ALL_ROWS.issubset(columns.names) else {}
    return found


def _taken(tables: Mapping[str, Any], connection: Any) -> set[str]:
    """The names of our own views, and the words of SQL."""
    own = {made.split()[2] for made in (*run_views(tables, ""), *derived(tables))}
    words = "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
    return own | {"footers"} | {word for (word,) in connection.execute(words).fetchall()}


def _columns(files: list[UPath]) -> Any:
    """The Arrow schema of a table's last shard."""
    with files[-1].open("rb") as file:
        return pq.read_schema(file).remove_metadata()


def _raw_view(connection: Any, table: str, files: list[UPath], columns: Any) -> None:
    """Create the view of all rows of a table; columns that a shard lacks are null."""
    if files and is_remote(files[0]):
        connection.register(f"raw_{table}_files", _dataset(files, columns))
        connection.execute(f"create view raw_{table} as from raw_{table}_files")
        return
    connection.register(f"no_{table}", columns.empty_table())
    statement = f"create view raw_{table} as from no_{table}"
    if files:
        source = f"read_parquet({_files(files)}, union_by_name = true)"
        statement += f" union all by name from {source}"
    connection.execute(statement)


def _dataset(files: list[UPath], columns: Any) -> Any:
    """Remote files as a dataset, which DuckDB scans without an extension: fetched in parallel, each
    once, when a query first reads it."""
    cached = fsspec.filesystem("simplecache", fs=files[0].fs)
    found = PyFileSystem(FSSpecHandler(cached))
    return ds.dataset([file.path for file in files], columns, format="parquet", filesystem=found)


def _step_rows(folder: UPath) -> list[dict[str, Any]]:
    rows = []
    for file in sorted(folder.glob("steps/*.json")):
        step = json.loads(file.read_text())
        texts = {k: json.dumps(step[k], sort_keys=True) for k in ("settings", "engine", "prompts")}
        rows.append({**step, **texts, "step_id": file.stem})
    return rows


def _shard_rows(tables: Iterable[str], files: Mapping[str, list[UPath]]) -> list[dict[str, Any]]:
    return [
        {"table_name": table, "step_id": file.parent.name, "unit": file.name.split(".")[0]}
        for table in tables
        for file in files[table]
    ]


def _unit_files(folder: UPath) -> list[UPath]:
    return sorted(folder.glob("runs/*/units.parquet"))


def _planned_view(connection: Any, folder: UPath) -> None:
    """What every run planned: run, step_id, unit, document_id, question_id."""
    files = _unit_files(folder)
    if is_remote(folder):
        parts = each(_units_of_run, files)
        connection.register("all_planned", pa.concat_tables(parts))
    else:
        source = f"read_parquet({_files(files)}, union_by_name = true, filename = true)"
        columns = "* exclude filename, parse_path(filename)[-2] as run"
        connection.execute(f"create view all_planned as select {columns} from {source}")


def _units_of_run(file: UPath) -> Any:
    rows = pq.read_table(io.BytesIO(file.read_bytes()), schema=UNITS)
    return rows.append_column("run", pa.array([file.parent.name] * rows.num_rows, pa.string()))


def _footers_view(connection: Any, files: list[UPath]) -> None:
    """A row per key of a shard's footer: file_name, key, value. Read when a query asks for it."""
    if not files:
        connection.execute(f"create view footers as select {_NO_FOOTER} where false")
        return
    if is_remote(files[0]):
        connection.register_filesystem(files[0].fs)
    source = f"parquet_kv_metadata({_files(files)})"
    connection.execute(f"create view footers as from {source}")
