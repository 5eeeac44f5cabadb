"""The views that commands read, independent of the stages: a contract with the record classes.

`answers` has the rows of one run, the units that it planned; `all_answers` those of every run with
`run` before the other columns: a row that two runs planned was made once and appears for both, one
that no run plans any more does not appear.

Some combine sections of the tables' .sql files (`measures`, `memories`, `sizes`, `counts`,
`page_texts`, `results`); others are derived from the columns of tables (`inputs`, `accounting`,
`runs`, `rests_on`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.core.calls import Call
from pipeline.core.rows import RECORDS, Document, Record
from pipeline.core.sql_files import filled, sql_beside, table_file, table_views, text
from pipeline.store.shards.shard_content import STARTED_AT, WORKER
from pipeline.store.sql.connection import View
from pipeline.store.sql.shard_views import TableFiles

_SQL = sql_beside(__file__)
LEFT_OUT = _SQL["left_out"]
_UNIONS = ("measures", "sizes", "counts", "page_texts", "results")  # of sections of that name


def run_views(tables: Mapping[str, TableFiles], run: str, is_small: bool) -> Iterator[View]:
    """The views of the run and of all runs, over `all_planned`, `footers` and the views
    `raw_...`."""
    kind = "table" if is_small else "view"
    yield View(filled(_SQL["all_units"], started_at=STARTED_AT, worker=WORKER))
    for name in ("planned", "units", "people"):
        yield View(filled(_SQL[name], run=text(run), kind=kind))
    for view, key in (("steps", "step_id"), ("shards", "step_id, unit")):
        yield View(_SQL[view])
        yield View(filled(_SQL["all_of_key"], view=view, key=key))
    for table, files in tables.items():
        yield from map(View, _of_table(table, files, kind))
    yield View(filled(_SQL["call_rows"], kind=kind))
    records = [record for name, record in RECORDS.items() if name in tables]
    for prefix in ("", "all_"):
        for record in records:
            for name, statement in table_views(record.sql(), prefix):
                yield View(statement, [(_place(record, name), View(statement).body)])
    columns = {table: files.columns.names for table, files in tables.items()}
    outcomes = _outcomes(
        {t: n for t, n in columns.items() if t == Document.table or tables[t].steps}
    )
    for prefix, rows_of, run_column in (("", "", ""), ("all_", "raw_", "run, ")):
        values = {"prefix": prefix, "rows_of": rows_of, "run": run_column, "outcomes": outcomes}
        for name in ("planned_done", "inputs", "accounting"):
            yield View(filled(_SQL[name], **values))
    yield View(_SQL["runs"])
    yield View(_SQL["answered_by"])
    yield View(filled(_SQL["rests_on"], parts=_of_methods(columns)))
    parts = _parts(records, "memories")
    joins = " ".join(f"left join ({part}\n) using (memory)" for _, part in parts)
    yield View(filled(_SQL["memories"], indexes=_of_memories(columns), joins=joins), parts)
    for name in _UNIONS:
        parts = _parts(records, name)
        union = " union all by name ".join(f"from ({part}\n)" for _, part in parts)
        yield View(filled(_SQL[name], parts=union), parts)


def _of_table(table: str, files: TableFiles, kind: str) -> Iterator[str]:
    """The views of a table. If units of overlapping runs have rows of the same question, each run
    shows the rows of the unit that it planned; if no run planned it, the lower unit's are shown,
    with null in the column `run`.

    A run's view looks its rows up among the planned units of the table's steps, by hashes of 128
    bits, which take a third of the memory of the ids. `coalesce` prevents a join that holds the
    table's rows instead, which DuckDB chooses if it estimates them to be fewer. In a small
    warehouse the rows are looked up once, and the view is a table.
    """
    key, on, once, ids = "step_id, unit", "on r.step_id = u.step_id and r.unit = u.unit", "", "unit"
    if "question_id" in files.columns.names:
        key += ", question_id"
        on += " and r.question_id is not distinct from u.question_id"
        once, ids = _ONCE if table != Call.table else "", "question_id"
    where = ""
    if files.steps:
        hashes, steps = (
            f"hash(step_id, unit), hash({ids})",
            ", ".join(map(text, sorted(files.steps))),
        )
        planned = f"select {hashes} from planned where step_id in ({steps})"
        where = f"where coalesce(({hashes}) in ({planned}), false)"
    kind = kind if files.steps and table != Call.table else "view"
    yield f"create {kind} {table} as from raw_{table} {where}"
    yield f"""create view all_{table} as select u.run, r.* from raw_{table} r
    left join (select distinct run, {key} from all_planned) u {on} {once}"""


_ONCE = """window same as (partition by r.step_id, r.question_id, r.input_sha)
qualify u.run is not null or (max(u.run) over same is null and r.unit = min(r.unit) over same)"""


def _parts(records: list[type[Record]], name: str) -> list[tuple[str, str]]:
    return [(_place(record, name), record.sql()[name]) for record in records
            if record.sql().get(name)]  # fmt: skip


def _place(record: type[Record], name: str) -> str:
    return f"{table_file(record.__module__, record.table)}: section {name!r}"


def _outcomes(columns: Mapping[str, Any]) -> str:
    return " union all ".join(
        filled(
            _SQL["outcomes"],
            table=table,
            question="question_id" if "question_id" in names else "null::varchar",
            skipped="coalesce(bool_and(skipped), false)" if "skipped" in names else "false",
        )
        for table, names in columns.items()
        if table != Call.table
    )


def _of_methods(columns: Mapping[str, Any]) -> str:
    """The methods of rows and the memories that they refer to, which all rows and calls of a step
    share. `coalesce` as in `_of_table`."""
    return " union all ".join(
        f"select method, memory from raw_{table} where coalesce(step_id in (from own), false)"
        for table, names in columns.items()
        if {"method", "memory"} <= {*names} and table != Call.table
    )


def _of_memories(columns: Mapping[str, Any]) -> str:
    return " union all ".join(
        f"select memory from {table}"
        for table, names in columns.items()
        if "memory" in names and "question_id" not in names
    )
