"""The views of the shards, loose and compacted: `raw_<table>`, `raw_shards` and `footers`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FSSpecHandler, PyFileSystem
from upath import UPath

from pipeline.core.arrow import schema
from pipeline.core.calls import Call
from pipeline.core.plugins import import_installed
from pipeline.core.rows import RECORDS
from pipeline.core.sql_files import filled, sql_beside, text
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
from pipeline.store.sql.run_views import run_views

_SQL = sql_beside(__file__)
_SHARDS = pa.schema([(name, pa.string()) for name in ("table_name", "step_id", "unit")])
_KEY = pa.schema([field for field in SCHEMA if field.name in KEY])
_MOST_FILES, _MOST_BYTES = 1_000, 16_000_000  # of a warehouse whose tables are read into memory
# Other names are of views that are made here.
_OF_A_TABLE = re.compile(r"(?!all_|raw_|no_)[a-z_][a-z0-9_]*(?<!_rows)")
_OF_ALL_ROWS = {"corpus", "step_id", "unit", "document_id", "problem"}  # columns of every table


def shard_views(
    connection: Connection, folder: UPath, left_out: DamagedFiles
) -> tuple[dict[str, Any], dict[str, set[str]], bool]:
    """Add the views. Returns the Arrow schema and the steps of every table."""
    listed, index = list_shard_files(folder), Compacted(folder).refresh()
    of_others: set[str] = set()  # tables with shards of another version

    def check(path: UPath) -> None:
        if not check_shard(path):
            of_others.add(path.parent.parent.name)

    current = loose_shards(folder, listed, index, are_current=True)
    loose = {table: left_out.sound(files, check) for table, files in current.items()}
    _index_rows(connection, index)
    compacted = _compacted_files(connection, folder, left_out) if index.path else {}
    tables = _readable_tables(connection, loose, compacted)
    superseded = _superseded_rows(connection, index, loose, compacted)
    connection.files += chain(*loose.values(), *compacted.values())
    is_small = _is_small(connection.files)
    connection.files += [index.path] if index.path else []
    if is_small:
        connection.raw.execute("set threads = 1")  # more would wait for one another
    files = _Files(loose, compacted, superseded, of_others, is_small)
    for table, columns in tables.items():
        _raw_view(connection, table, columns, files)
    _shards_view(connection, loose, tables)
    written = [file for table in tables if table != Call.table for file in loose.get(table, [])]
    _footers_view(connection, written)
    calls = [*loose.get(Call.table, []), *compacted.get(Call.table, [])]
    of_files = f"parquet_metadata({addresses(calls)})"
    none = "(select 0 as total_compressed_size, '' as path_in_schema where false)"
    connection.add(View(filled(_SQL["call_bytes"], columns=of_files if calls else none)))
    return tables, _steps(index, loose), is_small


@dataclass(frozen=True)
class _Files:
    """The files of every table. `superseded`: tables of which rows of compacted files do not count;
    `of_others`: those whose loose files have different columns; `are_small`: they may be copied
    into memory."""

    loose: Mapping[str, list[UPath]]
    compacted: Mapping[str, list[UPath]]
    superseded: set[str]
    of_others: set[str]
    are_small: bool


def _is_small(files: list[UPath]) -> bool:
    """True for local files whose rows take little memory: then they are read once, when a query
    first names their table. A view would open them again whenever a query names it."""
    if len(files) > _MOST_FILES or any(is_remote(file) for file in files[:1]):
        return False
    return sum(file_size(file) for file in files) <= _MOST_BYTES


def _steps(index: Index, loose: Mapping[str, list[UPath]]) -> dict[str, set[str]]:
    found = {table: {file.parent.name for file in files} for table, files in loose.items()}
    for table, step_id in index.steps():
        found.setdefault(table, set()).add(step_id)
    return found


def _index_rows(connection: Connection, index: Index) -> None:
    """Add `index_rows`, the index."""
    if index.path is not None and not is_remote(index.path):
        source = f"read_parquet({text(address(index.path))})"
        connection.add(View(f"create view index_rows as from {source}"))
    else:
        columns = [*_KEY.names, "file", "num_rows", "footer"]
        connection.raw.register("index_rows", index.read(columns))


def _compacted_files(
    connection: Connection, folder: UPath, left_out: DamagedFiles
) -> dict[str, list[UPath]]:
    """The compacted files of every table, but for damaged ones."""
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
    """The tables with their Arrow schemas: of the record class, else (a table of a plugin that is
    not loaded) of a shard, if that has the columns of every record and a view may have the name."""
    import_installed()
    found = {table: schema(record) for table, record in RECORDS.items()}
    others = sorted({*loose, *compacted} - {*found})
    taken = _taken(found, connection) if others else set()
    for table in others:
        paths = [*compacted.get(table, []), *loose.get(table, [])]
        if not paths or table in taken or not _OF_A_TABLE.fullmatch(table):
            continue
        columns = read_footer(paths[-1]).schema.to_arrow_schema().remove_metadata()
        if _OF_ALL_ROWS.issubset(columns.names):
            found[table] = pa.schema([field for field in columns if field.name != ATTEMPT])
    return found


def _taken(tables: Mapping[str, Any], connection: Connection) -> set[str]:
    """The names of our own views, and the words of SQL."""
    own = {view.name for view in run_views(tables, "", {}, False)}
    words = "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
    reserved = {word for (word,) in connection.execute(words).fetchall()}
    return own | {"footers", "left_out", "all_people"} | reserved


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


def _raw_view(connection: Connection, table: str, columns: Any, files: _Files) -> None:
    """Add the view, or table, of all rows of a table; columns that a shard lacks are null, others
    that it has are left out."""
    loose, compacted = files.loose.get(table, []), files.compacted.get(table, [])
    loose_rows, compacted_rows = f"{table}_loose_rows", f"{table}_compacted_rows"

    def register() -> None:
        connection.create_table(f"no_{table}", columns, [])
        _register_remote(connection, loose_rows, loose, columns)
        with_attempt = columns.append(pa.field(ATTEMPT, pa.int32()))
        _register_remote(connection, compacted_rows, compacted, with_attempt)

    query = f"from no_{table}"
    if loose:
        source = _source(loose_rows, loose, table not in files.of_others)
        query += f" union all by name from {source}"
    if compacted:
        query += f" union all by name from {_source(compacted_rows, compacted, False)} c"
        query += _NOT_SUPERSEDED.format(table=table) if table in files.superseded else ""
    names = ", ".join(f'"{name}"' for name in columns.names)
    # Not calls, of which few queries read the prompts: thirty times their bytes in the file.
    is_copied = files.are_small and table != Call.table and (loose or compacted)
    kind = "table" if is_copied else "view"
    statement = f"create {kind} raw_{table} as select {names} from ({query})"
    connection.add(View(statement, before=register))


_NOT_SUPERSEDED = f""" anti join superseded_rows s on s.table_name = '{{table}}'
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


def _shards_view(
    connection: Connection, loose: Mapping[str, list[UPath]], tables: Mapping[str, Any]
) -> None:
    rows = [
        {"table_name": table, "step_id": file.parent.name, "unit": file.name.split(".")[0]}
        for table in tables
        for file in loose.get(table, [])
    ]
    names = ", ".join(map(text, tables))
    statement = filled(_SQL["shards"], key=", ".join(_KEY.names), tables=names)
    connection.add_rows("shards", _SHARDS, rows, statement)


def _footers_view(connection: Connection, files: list[UPath]) -> None:
    """A row per key of a shard's footer: file_name, key, value. Read when a query asks for it."""
    statement = filled(_SQL["footers"], key=", ".join(_KEY.names))
    if files:
        path = f"substr(file_name, {len(address(files[0])) - len(str(files[0])) + 1}) as file_name"
        footers = f"parquet_kv_metadata({addresses(files)})"
        rows = f"select * replace ({path}) from {footers}"
        statement += f" union all by name {rows}"
    connection.add(View(statement))
