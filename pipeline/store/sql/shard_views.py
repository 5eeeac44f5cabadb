"""The views of the shards, loose and compacted: `raw_<table>`, `raw_shards`, `footers` and
`call_bytes`."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FSSpecHandler, PyFileSystem
from upath import UPath

from pipeline.core.calls import Call
from pipeline.core.registry import import_installed
from pipeline.core.rows import RECORDS, TABLE_NAME, VIEWS, schema
from pipeline.core.sql_files import filled, sql_beside, text, view_names
from pipeline.files.storage import file_size, is_remote
from pipeline.store.shards.damaged_files import DamagedFiles, check_shard, read_footer
from pipeline.store.shards.shard_index import (
    ATTEMPT,
    KEY,
    SCHEMA,
    Compacted,
    Index,
    check_compacted,
)
from pipeline.store.shards.shards import list_shard_files, loose_shards
from pipeline.store.sql.connection import Connection, View
from pipeline.store.sql.read_only_files import address, addresses

_SQL = sql_beside(__file__)
_SHARDS = pa.schema([(name, pa.string()) for name in ("table_name", "step_id", "unit")])
_KEY = pa.schema([field for field in SCHEMA if field.name in KEY])
_KEYS = ", ".join(_KEY.names)
_MOST_FILES, _MOST_BYTES = 1_000, 16_000_000  # of a warehouse whose tables are read into memory
_OF_ALL_ROWS = {"corpus", "step_id", "unit", "document_id", "problem"}  # columns of every table
_RESERVED = "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"


@dataclass(frozen=True)
class TableFiles:
    """The files of a table, and its `columns`, an Arrow schema. `are_alike`: all have these."""

    columns: Any
    loose: list[UPath]
    compacted: list[UPath]
    steps: set[str]
    are_alike: bool


def shard_views(
    connection: Connection, folder: UPath, left_out: DamagedFiles
) -> tuple[dict[str, TableFiles], bool]:
    """Add the views. Returns each table's files, and True if these take so little memory that rows
    are read once, when a query first names the table; else every query that names it opens them."""
    listed, index = list_shard_files(folder), Compacted(folder).refresh()
    of_others: set[str] = set()  # tables with shards of another version

    def check(path: UPath) -> None:
        if not check_shard(path):
            of_others.add(path.parent.parent.name)

    current = loose_shards(folder, listed, index, are_current=True)
    loose = {table: left_out.sound(files, check) for table, files in current.items()}
    _index_rows(connection, index)
    compacted = _compacted_files(connection, folder, left_out) if index.path else {}
    superseded = _superseded_rows(connection, index, loose, compacted)
    connection.files += chain(*loose.values(), *compacted.values())
    is_small = (
        len(connection.files) <= _MOST_FILES
        and not any(is_remote(file) for file in connection.files[:1])
        and sum(file_size(file) for file in connection.files) <= _MOST_BYTES
    )
    connection.files += [index.path] if index.path else []
    if is_small:
        connection.raw.execute("set threads = 1")  # more would wait for one another
    steps = {table: {file.parent.name for file in files} for table, files in loose.items()}
    for table, step_id in index.steps():
        steps.setdefault(table, set()).add(step_id)
    tables = {}
    for table, columns in _readable_tables(connection, loose, compacted).items():
        own, are_alike = compacted.get(table, []), table not in of_others
        files = TableFiles(columns, loose.get(table, []), own, steps.get(table, set()), are_alike)
        tables[table] = files
        _raw_view(connection, table, files, table in superseded, is_small)
    _views_of_files(connection, tables)
    return tables, is_small


def _index_rows(connection: Connection, index: Index) -> None:
    if index.path is not None and not is_remote(index.path):
        source = f"read_parquet({text(address(index.path))})"
        connection.add(View(f"create view index_rows as from {source}"))
    else:
        columns = [*_KEY.names, "file", "num_rows", "footer"]
        connection.raw.register("index_rows", index.read(columns))


def _compacted_files(
    connection: Connection, folder: UPath, left_out: DamagedFiles
) -> dict[str, list[UPath]]:
    found: dict[str, list[UPath]] = {}
    files = connection.execute(  # not by `Index.files`: PyArrow's group_by imports pandas
        "select table_name, file, sum(num_rows) from index_rows group by all order by all"
    ).fetchall()
    sizes = {folder / "compacted" / table / file: number for table, file, number in files}
    for file in left_out.sound([*sizes], lambda path: check_compacted(path, sizes[path])):
        found.setdefault(file.parent.name, []).append(file)
    return found


def _readable_tables(
    connection: Connection, loose: Mapping[str, list[UPath]], compacted: Mapping[str, list[UPath]]
) -> dict[str, Any]:
    """The tables with their Arrow schemas: the record class's, or, without one (the plugin is not
    loaded), a shard's, if it has the columns of every record and a view may have the name."""
    import_installed("tables")
    found = {table: schema(record) for table, record in RECORDS.items()}
    others = sorted({*loose, *compacted} - {*found})
    words = connection.raw.execute(_RESERVED).fetchall() if others else []
    views = [name for record in RECORDS.values() for name in view_names(record.sql())]
    taken = {*VIEWS, *views, *(word for (word,) in words)}
    for table in others:
        paths = [*compacted.get(table, []), *loose.get(table, [])]
        if not paths or table in taken or not TABLE_NAME.fullmatch(table):
            continue
        columns = read_footer(paths[-1]).schema.to_arrow_schema().remove_metadata()
        if _OF_ALL_ROWS.issubset(columns.names):
            found[table] = pa.schema([field for field in columns if field.name != ATTEMPT])
    return found


def _superseded_rows(
    connection: Connection,
    index: Index,
    loose: Mapping[str, list[UPath]],
    compacted: Mapping[str, list[UPath]],
) -> set[str]:
    """Create `superseded_rows`: the entries of the index that do not count, because a higher
    attempt is committed, or their file is damaged. Returns the tables that have some."""
    sound = {file.name for files in compacted.values() for file in files}
    is_ended = index.rows["superseded"]
    for damaged in set(index.rows["file"].unique().to_pylist()) - sound:
        is_ended = pc.or_(is_ended, pc.equal(index.rows["file"], damaged))
    ended = index.rows.filter(is_ended)
    entries = ended.select(_KEY.names).cast(_KEY).to_pylist()
    for table, files in loose.items():
        for step_id, own in groupby(files, key=lambda file: file.parent.name):
            attempts = index.units(table, step_id)  # read once per step
            units = (file.name.split(".")[0] for file in own)
            keys = [(table, step_id, unit, attempts[unit]) for unit in units if unit in attempts]
            entries += [dict(zip(_KEY.names, key, strict=True)) for key in keys]
    connection.create_table("superseded_rows", _KEY, entries)
    return {str(entry["table_name"]) for entry in entries}


def _raw_view(
    connection: Connection, table: str, files: TableFiles, is_superseded: bool, is_small: bool
) -> None:
    """Add the view, or table, of all rows of a table; columns that a shard lacks are null, others
    that it has are left out."""
    loose, compacted = files.loose, files.compacted
    sources = []
    if compacted or not loose or not files.are_alike:
        sources.append(f"no_{table}")  # which has the types
    if loose:
        sources.append(_source(f"{table}_loose_rows", loose, files.are_alike))
    if compacted:
        ended = _NOT_SUPERSEDED.format(table=table) if is_superseded else ""
        sources.append(f"{_source(f'{table}_compacted_rows', compacted, False)} c {ended}")

    def register() -> None:
        if sources[0] == f"no_{table}":
            connection.create_table(f"no_{table}", files.columns, [])
        _register_remote(connection, f"{table}_loose_rows", loose, files.columns)
        with_attempt = files.columns.append(pa.field(ATTEMPT, pa.int32()))
        _register_remote(connection, f"{table}_compacted_rows", compacted, with_attempt)

    names = ", ".join(f'"{name}"' for name in files.columns.names)
    # Not calls, of which few queries read the prompts: thirty times their bytes in the file.
    is_copied = is_small and table != Call.table and (loose or compacted)
    kind, rows = "table" if is_copied else "view", " union all by name from ".join(sources)
    connection.add(
        View(f"create {kind} raw_{table} as select {names} from (from {rows})", before=register)
    )


_NOT_SUPERSEDED = f"""anti join superseded_rows s on s.table_name = '{{table}}'
and s.step_id = c.step_id and s.unit = c.unit and s.attempt = c.{ATTEMPT}"""


def _source(name: str, files: list[UPath], are_alike: bool) -> str:
    """The SQL source of these files' rows in a query; remote ones are registered as `name`. Unless
    they are alike, DuckDB reads the columns of every file whenever it binds a view."""
    by_name = str(not are_alike).lower()
    listed = f"read_parquet({addresses(files)}, union_by_name = {by_name})"
    return name if is_remote(files[0]) else listed


def _register_remote(connection: Connection, name: str, files: list[UPath], columns: Any) -> None:
    """Register remote files as a dataset, which DuckDB scans without an extension: fetched in
    parallel, each once, when a query first reads it."""
    if not files or not is_remote(files[0]):
        return
    import pyarrow.dataset as ds  # imported here, as it imports pandas: 0.2 s of every command

    cached = PyFileSystem(FSSpecHandler(fsspec.filesystem("simplecache", fs=files[0].fs)))
    paths = [file.path for file in files]
    found = ds.dataset(paths, columns, format="parquet", filesystem=cached)
    connection.raw.register(name, found)


def _views_of_files(connection: Connection, tables: Mapping[str, TableFiles]) -> None:
    """Add the views of shards, of the keys in their footers, and of the size of calls. Only queries
    read footers."""
    rows = [
        {"table_name": table, "step_id": file.parent.name, "unit": file.name.split(".")[0]}
        for table, files in tables.items()
        for file in files.loose
    ]
    statement = filled(_SQL["shards"], key=_KEYS, tables=", ".join(map(text, tables)))
    connection.add_rows("shards", _SHARDS, rows, statement)
    footers = filled(_SQL["footers"], key=_KEYS)
    if loose := [file for t, files in tables.items() if t != Call.table for file in files.loose]:
        path = f"substr(file_name, {len(address(loose[0])) - len(str(loose[0])) + 1}) as file_name"
        of_loose = f"select * replace ({path}) from parquet_kv_metadata({addresses(loose)})"
        footers += f" union all by name {of_loose}"
    connection.add(View(footers))
    calls = [*tables[Call.table].loose, *tables[Call.table].compacted]
    of_calls = f"parquet_metadata({addresses(calls)})" if calls else "no_columns"
    connection.add(View(filled(_SQL["call_bytes"], columns=of_calls)))
