"""Check in SQL that every input of a run is accounted for (views `inputs` and `accounting`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pipeline.core.errors import AccountingError
from pipeline.core.rows import RECORDS
from pipeline.core.sql_files import text
from pipeline.store.sql.connection import query

_MOST_INPUTS = 500_000  # at once
_COUNTED = """select step_id, method, inputs, ok, problem, skipped, not_done
from accounting left join steps using (step_id) where {} order by step_id"""
_ROWS = """select step_id, count(*) as n from {} semi join steps using (step_id)
group by all order by step_id"""
_LOST = """select unit, document_id, question_id from inputs
where step_id = ? and not not_done and not has_rows order by all limit 1"""
_OTHERS = "from answered_by where is_other order by engine, calls desc, answered_by"


@dataclass(frozen=True)
class StepCounts:
    """One step of a run: its inputs (documents or questions), counted by outcome. `not_done`: those
    whose unit has no committed shard."""

    step_id: str
    method: str | None
    inputs: int
    ok: int
    problem: int
    skipped: int
    not_done: int

    @property
    def label(self) -> str:
        return f"{self.step_id} {self.method}" if self.method else self.step_id


def accounts(connection: Any) -> list[StepCounts]:
    """The counts of every step, by step_id. Raises AccountingError unless inputs = ok + problem +
    skipped + not_done, and if two rows have the same key."""
    parts = parts_of_run(connection)
    rows = [row for part in parts for row in query(connection, _COUNTED.format(part))]
    counts = [StepCounts(**row) for row in rows]
    for step in counts:
        counted = step.ok + step.problem + step.skipped + step.not_done
        if counted != step.inputs:
            what = "some have rows but no shard"
            # The query finds an input whose unit is committed without a row of it.
            if lost := connection.execute(_LOST, [step.step_id]).fetchone():
                unit, document_id, question_id = lost
                of = f"question {question_id!r} of " if question_id else ""
                what = f"unit {unit} has no row of {of}document {document_id!r}"
            numbers = f"{step.inputs} inputs, but {counted} accounted for"
            raise AccountingError(f"{step.label}: {numbers}; {what}")
    for table in RECORDS:
        for part in parts_of_run(connection, f"raw_{table}"):
            _refuse_doubles(connection, table, part)
    return counts


def parts_of_run(connection: Any, table: str = "planned") -> Iterator[str]:
    """Conditions on `step_id` that split the run's steps with rows in `table` into parts: DuckDB
    would hold kilobytes a question for all inputs of a large run together."""
    rows = query(connection, _ROWS.format(table))
    if sum(row["n"] for row in rows) <= _MOST_INPUTS:
        yield "true"
    else:
        yield from (f"step_id = {text(row['step_id'])}" for row in rows)


def _refuse_doubles(connection: Any, table: str, part: str) -> None:
    """Raise AccountingError if two rows of a table have the same key. Hashes are compared first, as
    keys take many times the memory. Rows of other runs' units of the same steps are compared, too,
    as it takes longer to leave them out."""
    keys = ", ".join(("step_id", *RECORDS[table].key))
    of_run = "coalesce(step_id in (select step_id from steps), false)"
    for rows in (f"(from raw_{table} where {of_run})", table):
        of_hash = f"from {rows} where {part} group by hash({keys})"
        if not query(connection, f"select 1 as n {of_hash} having count(*) > 1 limit 1"):
            return
    doubles = (f"select {keys}, min(unit), count(*) as n from {table} where {part} group by {keys} "
               "having n > 1 limit 1")  # fmt: skip
    for *values, unit, number in connection.execute(doubles).fetchall():
        raise AccountingError(
            f"{table}: {number} rows for one key {tuple(values)}, in unit {unit} of {values[0]}"
        )


def other_models(connection: Any) -> list[str]:
    """A line per engine for which another model, or several, answered."""
    lines = []
    for engine, rows in groupby(query(connection, _OTHERS), key=itemgetter("engine")):
        models = ", ".join(f"{row['answered_by']} ({row['calls']:,} calls)" for row in rows)
        lines.append(f"{engine} was answered by {models}, as the server says")
    return lines
