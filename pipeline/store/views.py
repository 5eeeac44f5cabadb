"""DuckDB views over the committed files of a warehouse. The only file that imports duckdb.

`answers`, `scores` ... show one run, `all_answers`, `all_scores` ... every run of the warehouse,
each row once per run that planned it (store/run_views.py). A table without files is an empty view
with typed columns.
"""

import io
import json
from collections.abc import Iterable, Mapping
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
from pipeline.store.index import ATTEMPT, KEY, SCHEMA, Compacted, Index
from pipeline.store.loose import listing, shown
from pipeline.store.run_views import run_views

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
_KEY = pa.schema([field for field in SCHEMA if field.name in KEY])
_OF_ALL_ROWS = {"corpus", "step_id", "unit", "document_id", "problem"}  # columns of every table


def connect(warehouse: AnyPath, run: str | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory connection with the views of one run, by default the latest.

    It sees the files committed so far; later ones need a new connection. Raises UsageError where
    the warehouse or the run does not exist.
    """
    folder = place(warehouse)
    name = run_name(folder, run)
    connection = duckdb.connect()
    _without_progress_bar(connection)
    found = listing(folder)
    index = Compacted(folder).refresh()
    loose = shown(folder, found, index)
    tables = _tables(folder, loose, index)
    _index_views(connection, index, loose)
    for table, columns in tables.items():
        _raw_view(
            connection, table, columns, loose.get(table, []), _compacted(folder, index, table)
        )
    _register(connection, "steps", _STEPS, _step_rows(folder))
    _shards_view(connection, loose, tables)
    _planned_view(connection, folder)
    written = [file for table in tables if table != Call.table for file in loose.get(table, [])]
    _footers_view(connection, written)
    for statement in (*run_views(tables, name), *derived(tables)):
        connection.execute(statement)
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


def _register(connection: Any, name: str, columns: Any, rows: list[dict[str, Any]]) -> None:
    connection.register(f"{name}_rows", pa.Table.from_pylist(rows, schema=columns))
    connection.execute(f"create view raw_{name} as from {name}_rows")


def _compacted(folder: UPath, index: Index, table: str) -> list[UPath]:
    """The table's compacted files."""
    names = (name for name in sorted(index.files()) if name.startswith(f"{table}/"))
    return [folder / "compacted" / name for name in names]


def _tables(folder: UPath, loose: Mapping[str, list[UPath]], index: Index) -> dict[str, Any]:
    """The tables with their Arrow schemas: of the record class, else (a table of a plugin that is
    not loaded) of a shard, if that has the columns of every record."""
    installed()
    found = {table: schema(record) for table, record in RECORDS.items()}
    stored = {*loose, *(name.partition("/")[0] for name in index.files())}
    for table in sorted(name for name in stored - {*found} if name.isidentifier()):
        paths = [*_compacted(folder, index, table), *loose.get(table, [])]
        if paths and _OF_ALL_ROWS.issubset((columns := _columns(paths)).names):
            found[table] = columns
    return found


def _columns(files: list[UPath]) -> Any:
    """The Arrow schema of a table's last shard."""
    with files[-1].open("rb") as file:
        found = pq.read_schema(file).remove_metadata()
    return pa.schema([field for field in found if field.name != ATTEMPT])


def _index_views(connection: Any, index: Index, loose: Mapping[str, list[UPath]]) -> None:
    """Create `index_rows`, the index, and `superseded_rows`: its entries of which a higher attempt
    is committed."""
    entries = index.rows.filter(index.rows["superseded"]).select(_KEY.names).cast(_KEY).to_pylist()
    for table, files in loose.items():
        for file in files:
            step_id, (unit, _, _) = file.parent.name, file.name.split(".")
            if attempt := index.units(table, step_id).get(unit):
                key = (table, step_id, unit, attempt)
                entries.append(dict(zip(_KEY.names, key, strict=True)))
    connection.register("superseded_rows", pa.Table.from_pylist(entries, schema=_KEY))
    if index.path is not None and not is_remote(index.path):
        source = f"read_parquet({_text(str(index.path))})"
        connection.execute(f"create view index_rows as from {source}")
    else:
        connection.register("index_rows", index.read([*_KEY.names, "footer"]))


def _raw_view(
    connection: Any, table: str, columns: Any, loose: list[UPath], compacted: list[UPath]
) -> None:
    """Create the view of all rows of a table; columns that a shard lacks are null."""
    connection.register(f"no_{table}", columns.empty_table())
    statement = f"create view raw_{table} as from no_{table}"
    if loose:
        source = _source(connection, f"{table}_loose_rows", loose, columns)
        statement += f" union all by name from {source}"
    if compacted:
        with_attempt = columns.append(pa.field(ATTEMPT, pa.int32()))
        source = _source(connection, f"{table}_compacted_rows", compacted, with_attempt)
        statement += f" union all by name select * exclude {ATTEMPT} from {source} c"
        statement += (
            _NOT_SUPERSEDED.format(table=table) if _is_superseded(connection, table) else ""
        )
    connection.execute(statement)


_NOT_SUPERSEDED = f""" anti join superseded_rows s on s.table_name = '{{table}}'
and s.step_id = c.step_id and s.unit = c.unit and s.attempt = c.{ATTEMPT}"""


def _is_superseded(connection: Any, table: str) -> bool:
    statement = "select 1 from superseded_rows where table_name = ? limit 1"
    return bool(connection.execute(statement, [table]).fetchall())


def _source(connection: Any, name: str, files: list[UPath], columns: Any) -> str:
    """What a query reads these files from."""
    if not is_remote(files[0]):
        return f"read_parquet({_files(files)}, union_by_name = true)"
    connection.register(name, _dataset(files, columns))
    return name


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


def _shards_view(
    connection: Any, loose: Mapping[str, list[UPath]], tables: Mapping[str, Any]
) -> None:
    rows = [
        {"table_name": table, "step_id": file.parent.name, "unit": file.name.split(".")[0]}
        for table in tables
        for file in loose.get(table, [])
    ]
    connection.register("shards_rows", pa.Table.from_pylist(rows, schema=_SHARDS))
    names = ", ".join(map(_text, tables))
    connection.execute(f"""create view raw_shards as from shards_rows union all
        select table_name, step_id, unit from index_rows
        anti join superseded_rows using ({", ".join(_KEY.names)})
        where table_name in ({names})""")


def _planned_view(connection: Any, folder: UPath) -> None:
    """What every run planned: run, step_id, unit, document_id, question_id."""
    files = sorted(folder.glob("runs/*/units.parquet"))
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
    statement = f"create view footers as {_FOOTERS_OF_INDEX}"
    if files:
        if is_remote(files[0]):
            connection.register_filesystem(files[0].fs)
        statement += f" union all by name from parquet_kv_metadata({_files(files)})"
    connection.execute(statement)


_FOOTERS_OF_INDEX = f"""
select concat_ws('/', 'tables', table_name, step_id, unit || '.' || attempt || '.parquet')
  as file_name, encode(pair.key) as key, encode(pair.value) as value
from (select table_name, step_id, unit, attempt, unnest(map_entries(footer)) as pair
  from index_rows anti join superseded_rows using ({", ".join(_KEY.names)})
  where table_name <> '{Call.table}')"""
