"""SQL of the views that show one run, or all: the rows of the units that it planned.

`answers` has the rows of one run, `all_answers` those of every run with `run` before the other
columns: a row that two runs planned was made once and appears for both, one that no run plans any
more does not appear.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pipeline.core.calls import Call
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.shards.shard_files import STARTED_AT, WORKER

_SQL = sql_beside(__file__)
LEFT_OUT = _SQL["left_out"]


def run_views(
    tables: Mapping[str, Any], run: str, steps: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """`create view` statements of the run and of all runs, over `all_planned`, `footers` and the
    views `raw_...`; `tables` with their Arrow schemas, and the `steps` that have shards there."""
    yield filled(_SQL["all_units"], started_at=STARTED_AT, worker=WORKER)
    yield from (filled(_SQL[view], run=text(run)) for view in ("planned", "units", "people"))
    for view, key in (("steps", "step_id"), ("shards", "step_id, unit")):
        yield _SQL[view]
        yield filled(_SQL["all_of_key"], view=view, key=key)
    for table, columns in tables.items():
        yield from _of_table(table, columns.names, steps.get(table, ()))


def _of_table(table: str, columns: list[str], steps: Collection[str]) -> Iterator[str]:
    """The views of a table. If two units have rows of the same question, as runs overlapped, each
    run shows those of the unit it planned; if no run planned it, those of the lower unit are shown,
    with a null in the column `run`.

    Of the planned units a run's view joins those of the table's `steps` alone, which takes a
    fraction of the memory.
    """
    key, on, once = "step_id, unit", "on r.step_id = u.step_id and r.unit = u.unit", ""
    if "question_id" in columns:
        key, on = (
            f"{key}, question_id",
            f"{on} and r.question_id is not distinct from u.question_id",
        )
        once = _ONCE if table != Call.table else ""
    planned = f"(from planned where step_id in ({', '.join(map(text, sorted(steps))) or 'null'}))"
    yield f"create view {table} as select r.* from raw_{table} r semi join {planned} u {on}"
    yield f"""create view all_{table} as select u.run, r.* from raw_{table} r
    left join (select distinct run, {key} from all_planned) u {on} {once}"""


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


_ONCE = """window same as (partition by r.step_id, r.question_id, r.input_sha)
qualify u.run is not null or (max(u.run) over same is null and r.unit = min(r.unit) over same)"""
