"""The views that commands read, independent of the stages: a contract with the record classes.

Some combine sections of the tables' .sql files (`measures`, `memories`, `sizes`, `counts`,
`page_texts`, `results`); the others are derived from the columns of tables (`inputs`, `accounting`,
`runs`, `rests_on`).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pipeline.core.calls import Call
from pipeline.core.rows import RECORDS, Document, Record
from pipeline.core.sql_files import filled, sql_beside, table_file, table_views
from pipeline.store.sql.connection import View

_SQL = sql_beside(__file__)
_UNIONS = ("measures", "sizes", "counts", "page_texts", "results")  # of sections of that name
_PREFIXES = ("", "all_")


def derived(tables: Mapping[str, Any], written: Collection[str] = ()) -> Iterator[View]:
    """The views of record classes and all contract views.

    `tables`: table name -> Arrow schema; `written`: those that have rows.
    """
    with_rows = {t: own for t, own in tables.items() if t in (Document.table, *written)}
    records = _records(tables)
    for prefix in _PREFIXES:
        for record in records:
            for name, statement in table_views(record.sql(), prefix):
                body = statement.split(None, 4)[4]
                yield View(statement, [(_place(record, name), body)])
    yield View(_inputs_view(with_rows))
    yield View(_inputs_view(with_rows, "all_", "raw_"))
    yield View(filled(_SQL["accounting"], prefix="", run=""))
    yield View(filled(_SQL["accounting"], prefix="all_", run="run, "))
    yield View(_SQL["runs"])
    yield View(_rests_on_view(tables))
    parts = _parts(records, "memories")
    yield View(_memories_view(tables, [part for _, part in parts]), parts)
    for view in _UNIONS:
        parts = _parts(records, view)
        union = " union all by name ".join(f"from ({part}\n)" for _, part in parts)
        yield View(filled(_SQL[view], parts=union), parts)


def _records(tables: Mapping[str, Any]) -> list[type[Record]]:
    return [record for name, record in RECORDS.items() if name in tables]


def _parts(records: list[type[Record]], name: str) -> list[tuple[str, str]]:
    """The sections of that name, each after its file and name."""
    return [(_place(record, name), record.sql()[name]) for record in records
            if record.sql().get(name)]  # fmt: skip


def _place(record: type[Record], name: str) -> str:
    return f"{table_file(record.__module__, record.table)}: section {name!r}"


def _inputs_view(tables: Mapping[str, Any], prefix: str = "", rows_of: str = "") -> str:
    """One row per planned input, of the run or of all runs, and its outcome."""
    parts = [
        filled(
            _SQL["outcomes"],
            table=table,
            question="question_id" if "question_id" in columns.names else "null::varchar",
            skipped="bool_and(skipped)" if "skipped" in columns.names else "false",
        )
        for table, columns in tables.items()
        if table != Call.table
    ]
    run, outcomes = "u.run, " if prefix else "", " union all ".join(parts)
    return filled(_SQL["inputs"], prefix=prefix, rows_of=rows_of, run=run, outcomes=outcomes)


def _rests_on_view(tables: Mapping[str, Any]) -> str:
    """A row per method and memory that its rows refer to."""
    parts = [
        f"select method, memory from {table}"
        for table, columns in tables.items()
        if {"method", "memory"} <= {*columns.names}
    ]
    return filled(_SQL["rests_on"], parts=" union all ".join(parts))


def _memories_view(tables: Mapping[str, Any], parts: list[str]) -> str:
    """A row per memory: its corpus, the columns of record classes, its calls and tokens."""
    indexes = [
        f"select memory from {table}"
        for table, columns in tables.items()
        if "memory" in columns.names and "question_id" not in columns.names
    ]
    joins = " ".join(f"left join ({part}\n) using (memory)" for part in parts)
    return filled(_SQL["memories"], indexes=" union all ".join(indexes), joins=joins)
