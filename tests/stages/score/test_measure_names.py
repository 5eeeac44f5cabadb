"""No metric, rubric or table's SQL of a plugin may have the name of a measure or view that there is
already."""

from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.work.stage import register_measure
from tests.support.runs.finished_run import FinishedRun


def test_the_measures_of_a_run_are_taken(tmp_path: Path) -> None:
    """Those of metrics and those that the tables' SQL makes, of readagent_p with a rater."""

    def brought(answer: str, reference: str) -> float:
        return 100.0 * (answer == reference)

    connection = connect(FinishedRun(tmp_path).warehouse, "night")
    rows = query(connection, "select distinct measure from measures")
    names = {row["measure"] for row in rows}
    assert {"lr_1", "lr_2", "squad_em", "compression_rate", "lookups", "length"} <= names
    for name in names:
        with pytest.raises(UsageError, match=rf"brought makes the measure '{name}', which is that"):
            register_measure(name, brought)


MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from pipeline.core.rows import QuestionRow
from pipeline.work.stage import Column, Stage

@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(QuestionRow):
    table: ClassVar[str] = "{table}"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    value: float | None

class Count(Stage):
    name: ClassVar[str] = "count"
    kind: ClassVar[str] = "{table}"
    version: ClassVar[int] = 1
    writes: ClassVar[type] = Tally
    report_columns = {{"any": (Column("{table}_told", "told", 90),)}}

    async def run(self, rows, ask):
        return []
"""
SQL = """-- name: {view}
create view {{prefix}}{view} as
-- One row per tally.
select {{run}}question_id, value from {{prefix}}{table};

-- name: measures
select method, repeat, document_id, question_id, null as rater, problem,
  '{measure}' as measure, value from {table}
union all select method, repeat, document_id, question_id, null as rater, problem,
  '{table}_told' as measure, value from {table};
"""


def plugin(folder: Path, table: str, view: str, measure: str) -> str:
    """A stage, its table and a column of the report, whose values that table's SQL makes."""
    own = folder / f"plugin_{table}_{folder.name}"  # imported once
    own.mkdir()
    (own / "count.py").write_text(MODULE.format(table=table))
    (own / f"{table}.sql").write_text(SQL.format(table=table, view=view, measure=measure))
    return str(own)


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(
    ("view", "measure", "told"),
    [
        ("readings", "weight",
         "makes the table or view 'readings', which is that of stages.tables.answers.Answer"),
        ("runs", "weight", "makes the table or view 'runs', which is that of every warehouse"),
        ("third", "speed",
         "makes the measure 'speed', which is that of gistmill_plugins.plugin_firsts"),
        ("third", "firsts_told", "makes the measure 'firsts_told', which is that of gistmill_"),
    ],
)  # fmt: skip
def test_the_sql_of_a_table_names_nothing_that_there_is(
    tmp_path: Path, view: str, measure: str, told: str
) -> None:
    load_plugins([plugin(tmp_path, "firsts", "seconds", "speed")])
    other = plugin(tmp_path, "thirds", view, measure)
    with pytest.raises(UsageError) as refused:
        load_plugins([other])
    line = str(refused.value)
    assert told in line and "gistmill_plugins.plugin_thirds" in line and "\n" not in line
