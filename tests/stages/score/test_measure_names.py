"""No metric or rubric of a plugin may have the name of a measure that there is already, and no SQL
of a table that of a view."""

from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.work.stage import MEASURES
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
            MEASURES.add(name, brought)


MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from pipeline.core.rows import QuestionRow
from pipeline.work.stage import Stage

@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(QuestionRow):
    table: ClassVar[str] = "tallies"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    value: float | None

class Count(Stage):
    name: ClassVar[str] = "count"
    version: ClassVar[int] = 1
    writes: ClassVar[type] = Tally

    async def run(self, rows, ask):
        return []
"""
SQL = """-- name: {view}
create view {{prefix}}{view} as
-- One row per tally.
select {{run}}question_id, value from {{prefix}}tallies;
"""


def plugin(folder: Path, view: str) -> str:
    """A stage and its table, of which SQL makes a view."""
    own = folder / f"plugin_tallies_{folder.name}"  # imported once
    own.mkdir()
    (own / "count.py").write_text(MODULE)
    (own / "tallies.sql").write_text(SQL.format(view=view))
    return str(own)


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(
    ("view", "told"),
    [
        ("readings",
         "makes the table or view 'readings', which is that of stages.tables.answers.Answer"),
        ("runs", "makes the table or view 'runs', which is that of every warehouse"),
    ],
)  # fmt: skip
def test_the_sql_of_a_table_names_no_view_that_there_is(
    tmp_path: Path, view: str, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load_plugins([plugin(tmp_path, view)])
    line = str(refused.value)
    assert told in line and "gistmill_plugins.plugin_tallies" in line and "\n" not in line
