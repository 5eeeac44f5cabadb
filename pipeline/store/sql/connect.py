"""Connect to a warehouse and make the views that commands read. The views know record classes, no
stages.

The view `raw_answers` has the rows of all shards, loose and compacted. `answers` has the rows of
the units that one run planned. `all_answers` has the rows of every run, with a first column `run`:
a row that two runs planned was made once and appears for both; for a row that no run plans any more
`run` is null.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from upath import UPath

from pipeline.core.calls import Call
from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.registry import import_installed, nearest
from pipeline.core.rows import RECORDS, TABLE_NAME, VIEWS, Document, Record, schema
from pipeline.core.sql_files import filled, sql_beside, table_file, table_views, text, view_names
from pipeline.files.storage import (
    AnyPath,
    as_path,
    file_size,
    is_remote,
    list_paths,
    modified_at,
)
from pipeline.store.runs.run_folder import (
    ALL_PEOPLE,
    KNOWN_ANSWERS,
    UNITS,
    check_planned,
    people_rows,
    planned_files,
)
from pipeline.store.shards.damaged_files import (
    MOVE_STEP,
    DamagedFiles,
    damaged_shard,
    has_columns,
    read_footer,
    read_parsed,
    shard_footer,
)
from pipeline.store.shards.layout import STARTED_AT, WORKER, check_layout
from pipeline.store.shards.shard_index import (
    ATTEMPT,
    KEY,
    SCHEMA,
    Compacted,
    Index,
    check_compacted,
)
from pipeline.store.shards.shards import list_shard_files, loose_shards
from pipeline.store.sql.connection import PREFIX, Connection, addresses, lock

_SQL = sql_beside(__file__)
_STEPS = pa.schema(
    [
        ("step_id", pa.string()), ("stage", pa.string()), ("version", pa.int64()),
        ("method", pa.string()), ("repeat", pa.int64()), ("settings", pa.string()),
        ("engine", pa.string()), ("prompts", pa.string()), ("upstream", pa.list_(pa.string())),
    ]
)  # fmt: skip
_LEFT_OUT = pa.schema([("file", pa.string()), ("why", pa.string())])
_UNIONS = ("measures", "sizes", "counts", "page_texts", "results")  # of sections of that name
_SHARDS = pa.schema([(name, pa.string()) for name in ("table_name", "step_id", "unit")])
_KEY = ", ".join(KEY)
_MOST_FILES, _MOST_BYTES = 1_000, 16_000_000  # in a warehouse whose tables are read into memory
_THREADS = 16  # for remote files: an object store has a latency of tens of milliseconds
_RESERVED = "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
_OF_EVERY_TABLE = {"corpus", "step_id", "unit", "document_id", "problem"}  # columns
_NOT_SUPERSEDED = f"""anti join superseded_rows s on s.table_name = '{{table}}'
and s.step_id = c.step_id and s.unit = c.unit and s.attempt = c.{ATTEMPT}"""
_ONCE = """window same as (partition by r.step_id, r.question_id, r.input_sha)
qualify u.run is not null or (max(u.run) over same is null and r.unit = min(r.unit) over same)"""


@dataclass(frozen=True)
class TableFiles:
    """The files of a table, the steps that have some, and its `columns`, an Arrow schema.
    `are_alike`: every file has exactly these columns."""

    columns: Any
    loose: list[UPath]
    compacted: list[UPath]
    steps: set[str]
    are_alike: bool


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


def connect(warehouse: AnyPath, run: str | None = None, unsafe: bool = False) -> Connection:
    """As `pipeline.store.connect`. A view made of a table's wrong SQL raises UsageError when a
    statement names it; with `unsafe`, at once."""
    folder, left_out = as_path(warehouse), DamagedFiles()
    left_out.unless_damaged(lambda: check_layout(folder), None)
    plans = _plans_by_last_start(folder)
    connection = Connection(_chosen_run(folder, plans, run))
    connection.raw.execute("set parquet_metadata_cache = true")  # else every view reads all footers
    readable_plans = left_out.sound(sorted(plans), check_planned)
    connection.files += readable_plans
    tables, is_small = _add_shard_views(connection, folder, left_out)
    files = sorted(list_paths(folder / "steps", "*.json"))
    steps = [left_out.unless_damaged(partial(_step_row, file), None) for file in files]
    connection.create_table("raw_steps", _STEPS, [row for row in steps if row])
    source = f"read_parquet({addresses(readable_plans)}, union_by_name = true, filename = true)"
    columns = f"{', '.join(UNITS.names)}, parse_path(filename)[-2] as run"
    kind = "table" if is_remote(folder) else "view"  # a remote file is fetched once
    connection.add(f"create {kind} all_planned as select {columns} from {source}")
    for statement, section in _run_views(tables, connection.run, is_small):
        connection.add(statement, section)
    connection.create_table("all_people", ALL_PEOPLE, people_rows(folder, left_out))
    connection.create_table("left_out_rows", _LEFT_OUT, left_out.rows)
    connection.add(_SQL["left_out"])
    if unsafe:
        connection.make_all()
        connection.raw.execute("set python_enable_replacements = true")
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
    return _chosen_run(folder, _plans_by_last_start(folder), run)


def _chosen_run(folder: UPath, plans: Sequence[UPath], run: str | None) -> str:
    if not plans:
        raise UsageError(f"{folder}: no run there; start one with gistmill run, or set warehouse=")
    of_run = [file for file in plans if run in (None, file.parent.name)]
    if not of_run:
        names = sorted(file.parent.name for file in plans)
        raise UsageError(f"run={run}: not in {folder}; it has {nearest(run or '', names)}")
    check_planned(of_run[-1])
    return str(of_run[-1].parent.name)


def readable_run(warehouse: AnyPath) -> str:
    """The last run whose planned inputs can be read. Raises as `run_name` does."""
    readable = DamagedFiles().sound(_plans_by_last_start(as_path(warehouse)), check_planned)
    return str(readable[-1].parent.name) if readable else run_name(warehouse, None)


def _plans_by_last_start(folder: UPath) -> list[UPath]:
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


def _add_shard_views(
    connection: Connection, folder: UPath, left_out: DamagedFiles
) -> tuple[dict[str, TableFiles], bool]:
    """Add the views of shards. Returns each table's files, and True if they are so small that a
    table's rows are copied into memory when a query first names it, and not read by every query."""
    listed, index = list_shard_files(folder), Compacted(folder).refresh()
    of_other_versions: set[str] = set()  # tables with shards of another version

    def check(path: UPath) -> None:
        record = RECORDS.get(path.parent.parent.name)
        try:
            footer = shard_footer(path)
        except FileNotFoundError:
            raise damaged_shard(path, "cannot be read (no such file)") from None
        if record is None or not has_columns(footer, schema(record)):
            of_other_versions.add(path.parent.parent.name)

    current = loose_shards(folder, listed, index, are_current=True)
    loose = {table: left_out.sound(files, check) for table, files in current.items()}
    compacted, superseded = _compacted_files(connection, folder, index, loose, left_out)
    connection.files += chain(*loose.values(), *compacted.values())
    is_small = (
        not is_remote(folder)
        and len(connection.files) <= _MOST_FILES
        and sum(file_size(file) for file in connection.files) <= _MOST_BYTES
    )
    connection.files += [index.path] if index.path else []
    if is_small or is_remote(folder):  # more would wait for one another, or fewer for the network
        connection.raw.execute(f"set threads = {1 if is_small else _THREADS}")
    steps = {table: {file.parent.name for file in files} for table, files in loose.items()}
    for table, step_id in index.steps:
        steps.setdefault(table, set()).add(step_id)
    tables = {}
    for table, columns in _readable_tables(connection, loose, compacted).items():
        lists = loose.get(table, []), compacted.get(table, []), steps.get(table, set())
        tables[table] = TableFiles(columns, *lists, are_alike=table not in of_other_versions)
        _add_raw_view(connection, table, tables[table], table in superseded, is_small)
    _add_views_of_files(connection, tables)
    return tables, is_small


def _add_views_of_files(connection: Connection, tables: Mapping[str, TableFiles]) -> None:
    """Add the views of the shards, of their footers, and of the size of calls."""
    names = ", ".join(map(text, tables))
    connection.add(filled(_SQL["raw_shards"], key=_KEY, tables=names))
    footers = filled(_SQL["footers"], key=_KEY)
    if files := [file for t, of_t in tables.items() if t != Call.table for file in of_t.loose]:
        path = f"substr(file_name, {len(PREFIX) + 1}) as file_name"
        of_loose = f"select * replace ({path}) from parquet_kv_metadata({addresses(files)})"
        footers += f" union all by name {of_loose}"
    connection.add(footers)
    calls = [*tables[Call.table].loose, *tables[Call.table].compacted]
    of_calls = f"parquet_metadata({addresses(calls)})" if calls else "no_columns"
    connection.add(filled(_SQL["call_bytes"], columns=of_calls))


def _compacted_files(
    connection: Connection,
    folder: UPath,
    index: Index,
    loose: Mapping[str, list[UPath]],
    left_out: DamagedFiles,
) -> tuple[dict[str, list[UPath]], set[str]]:
    """Add the entries of the index (`index_rows`), and those that do not count (`superseded_rows`).
    Returns the compacted files of each table, and the tables with entries that do not count."""
    if index.path is None:
        connection.create_table("index_rows", SCHEMA, [])
    else:
        source = f"read_parquet({addresses([index.path])})"
        connection.add(f"create view index_rows as from {source}")
    files = connection.execute(  # not by `Index.files`: PyArrow's group_by imports pandas
        "select table_name, file, sum(num_rows) from index_rows group by all order by all"
    ).fetchall()
    num_rows = {folder / "compacted" / table / file: number for table, file, number in files}
    whole = left_out.sound([*num_rows], lambda path: check_compacted(path, num_rows[path]))
    damaged = ", ".join(text(path.name) for path in num_rows.keys() - {*whole})
    rows = [
        {"table_name": table, "step_id": file.parent.name, "unit": file.name.split(".")[0]}
        for table, of_table in loose.items()
        for file in of_table
    ]
    connection.create_table("shards_rows", _SHARDS, rows)
    connection.add(filled(_SQL["superseded_rows"], key=_KEY, damaged=damaged))
    if index.path is None:
        return {}, set()
    superseded = connection.execute("select distinct table_name from superseded_rows").fetchall()
    of_tables = {table: [*of] for table, of in groupby(whole, key=lambda path: path.parent.name)}
    return of_tables, {table for (table,) in superseded}


def _readable_tables(
    connection: Connection, loose: Mapping[str, list[UPath]], compacted: Mapping[str, list[UPath]]
) -> dict[str, Any]:
    """The tables with their Arrow schemas. A table without a record class, as its plugin is not
    loaded, has the schema of one of its files, if that has the columns of every table."""
    import_installed("tables")
    tables = {table: schema(record) for table, record in RECORDS.items()}
    views = {name for record in RECORDS.values() for name in view_names(record.sql())}
    unknown = sorted({*loose, *compacted} - {*tables, *views, *VIEWS})
    # No view can have a reserved word's name: statements that make all views would fail.
    reserved = connection.raw.execute(_RESERVED).fetchall() if unknown else []
    for table in unknown:
        paths = [*compacted.get(table, []), *loose.get(table, [])]
        if paths and TABLE_NAME.fullmatch(table) and (table,) not in reserved:
            columns = read_footer(paths[-1]).schema.to_arrow_schema().remove_metadata()
            if _OF_EVERY_TABLE.issubset(columns.names):
                tables[table] = pa.schema([field for field in columns if field.name != ATTEMPT])
    return tables


def _add_raw_view(
    connection: Connection, table: str, files: TableFiles, is_superseded: bool, is_small: bool
) -> None:
    """Add the view, or table, of all rows of a table; columns that a shard lacks are null."""
    sources = []
    if files.compacted or not files.loose or not files.are_alike:
        connection.create_table(f"no_{table}", files.columns, [])  # has all columns
        sources.append(f"no_{table}")
    if files.loose:  # by name, DuckDB reads the columns of every file whenever it binds the view
        by_name = f"union_by_name = {not files.are_alike}"
        sources.append(f"read_parquet({addresses(files.loose)}, {by_name})")
    if files.compacted:
        condition = _NOT_SUPERSEDED.format(table=table) if is_superseded else ""
        rows = f"read_parquet({addresses(files.compacted)}, union_by_name = true)"
        sources.append(f"{rows} c {condition}")
    names = ", ".join(f'"{name}"' for name in files.columns.names)
    # Calls are not copied: few queries read their prompts, which take thirty times the bytes of
    # the file.
    is_copied = is_small and table != Call.table and (files.loose or files.compacted)
    kind, union = "table" if is_copied else "view", " union all by name from ".join(sources)
    connection.add(f"create {kind} raw_{table} as select {names} from (from {union})")


def _run_views(
    tables: Mapping[str, TableFiles], run: str, is_small: bool
) -> Iterator[tuple[str, str]]:
    """The statement and section of each view of the run and of all runs."""
    kind = "table" if is_small else "view"
    columns = {table: {*files.columns.names} for table, files in tables.items()}
    # All rows and calls of a step share its method and memory. `coalesce`: see `_table_views`.
    methods = [
        f"select method, memory from raw_{table} where coalesce(step_id in (from of_run), false)"
        for table, names in columns.items()
        if {"method", "memory"} <= names and table != Call.table
    ]
    memories = [
        f"select memory from {table}"
        for table, names in columns.items()
        if "memory" in names and "question_id" not in names
    ]
    union = " union all ".join
    values = {"name": text(run), "kind": kind, "started_at": STARTED_AT, "worker": WORKER}
    values |= {"methods": union(methods), "indexes": union(memories)}
    for name in ("all_units", "planned", "units", "people", "steps", "shards", "call_rows", "runs",
                 "answered_by", "rests_on"):  # fmt: skip
        yield filled(_SQL[name], **values), ""
    for view, key in (("steps", "step_id"), ("shards", "step_id, unit")):
        yield filled(_SQL["all_of_key"], view=view, key=key), ""
    for table, files in tables.items():
        yield from ((statement, "") for statement in _table_views(table, files, kind))
    records = [record for name, record in RECORDS.items() if name in tables]
    for prefix in ("", "all_"):
        for record in records:
            for name, statement in table_views(record.sql(), prefix):
                yield statement, _section(record, name)
    outcomes = union(_outcomes(tables))
    for prefix, rows_of, run_column in (("", "", ""), ("all_", "raw_", "run, ")):
        values = {"prefix": prefix, "rows_of": rows_of, "run": run_column, "outcomes": outcomes}
        for name in ("planned_done", "inputs", "accounting"):
            yield filled(_SQL[name], **values), ""
    for name in ("memories", *_UNIONS):
        yield from _view_of_parts(name, records, union(memories))


def _view_of_parts(
    name: str, records: Sequence[type[Record]], indexes: str
) -> Iterator[tuple[str, str]]:
    """A view of each table's part, before the view that is made of them."""
    parts = {f"{r.table}_{name}_rows": r for r in records if name in r.sql()}
    for part, record in parts.items():
        yield f"create view {part} as {record.sql()[name]}", _section(record, name)
    joins = " ".join(f"left join {part} using (memory)" for part in parts)
    rows = " union all by name ".join(f"from {part}" for part in parts)
    yield filled(_SQL[name], indexes=indexes, joins=joins, parts=rows), ""


def _section(record: type[Record], name: str) -> str:
    return f"{table_file(record.__module__, record.table)}: section {name!r}"


def _table_views(table: str, files: TableFiles, kind: str) -> Iterator[str]:
    """The views of a table. If units of overlapping runs have rows of the same question, each run
    shows the rows of the unit that it planned. If no run planned any of these units, the rows of
    the unit with the lowest name are shown, with null in the column `run`.

    A run's view looks its rows up among the planned units, by hashes of 128 bits, which take a
    third of the memory of the ids. Without `coalesce` DuckDB would join, and hold the table's rows
    in memory instead of the hashes if it estimates the rows to be fewer.
    """
    key, on, once, ids = "step_id, unit", "on r.step_id = u.step_id and r.unit = u.unit", "", "unit"
    if "question_id" in files.columns.names:
        key += ", question_id"
        on += " and r.question_id is not distinct from u.question_id"
        once, ids = _ONCE if table != Call.table else "", "question_id"
    where = ""
    if files.steps:
        hashes = f"hash(step_id, unit), hash({ids})"
        steps = ", ".join(map(text, sorted(files.steps)))
        planned = f"select {hashes} from planned where step_id in ({steps})"
        where = f"where coalesce(({hashes}) in ({planned}), false)"
    kind = kind if files.steps and table != Call.table else "view"
    yield f"create {kind} {table} as from raw_{table} {where}"
    yield f"""create view all_{table} as select u.run, r.* from raw_{table} r
    left join (select distinct run, {key} from all_planned) u {on} {once}"""


def _outcomes(tables: Mapping[str, TableFiles]) -> Iterator[str]:
    for table, files in tables.items():
        names = files.columns.names
        if table != Call.table and (files.steps or table == Document.table):
            yield filled(
                _SQL["outcomes"],
                table=table,
                question="question_id" if "question_id" in names else "null::varchar",
                skipped="coalesce(bool_and(skipped), false)" if "skipped" in names else "false",
            )
