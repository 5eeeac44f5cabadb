"""No metric or rubric of a plugin may have the name of a measure that a run has already."""

from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.store import connect
from pipeline.store.sql.connection import query
from pipeline.work.measure_names import register_measure
from tests.support.runs.finished_run import FinishedRun


def brought(answer: str, reference: str) -> float:
    return 100.0 * (answer == reference)


def test_the_measures_of_a_run_are_taken(tmp_path: Path) -> None:
    """Those of metrics and those that the tables' SQL makes, of readagent_p with a rater."""
    warehouse = FinishedRun(tmp_path).warehouse
    found = query(connect(warehouse, "night"), "select distinct measure from measures order by 1")
    names = [row["measure"] for row in found]
    assert {"lr_1", "lr_2", "squad_em", "compression_rate", "lookups", "length"} <= {*names}
    for name in names:
        with pytest.raises(UsageError, match=rf"brought makes the measure '{name}', which is that"):
            register_measure(name, brought)
