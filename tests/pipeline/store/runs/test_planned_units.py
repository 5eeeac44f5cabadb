"""The planned units of a run: which documents a launch finds finished there."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.store.runs.planned_units import PLANNED, write_plan
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.executions import PlannedDocument
from pipeline.work.steps import Step
from pipeline.work.units import Committed
from tests.support.runs.warehouse import chunk, document_unit, step

STEPS = [step("documents"), step("answers", "full_text")]
DOCUMENTS = [
    PlannedDocument(
        own, 2, False, 2,
        [document_unit(STEPS[0], own), chunk(STEPS[1], own, f"{own}-1", f"{own}-2")],
        f"sha of {own}",
    )
    for own in ("a", "b", "c")
]  # fmt: skip
A, B, C = ([unit.unit for unit in document.units] for document in DOCUMENTS)


@pytest.fixture
def night(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path, "night")
    assert [*write_plan(folder.plan_files, DOCUMENTS)] == [True]
    folder.plan(STEPS, folder.plan_files)
    return folder


def committed(**attempts: int) -> Committed:
    """All units of `a` and `b` at the first attempt, or those given; of `c` the document's own."""
    units = {STEPS[0].id: {A[0]: 1, B[0]: 1, C[0]: 1}, STEPS[1].id: {A[1]: 1, B[1]: 1, **attempts}}
    return Committed(units=units, inputs={})


def test_a_document_is_finished_where_all_its_units_are_committed(night: RunFolder) -> None:
    assert night.finished(STEPS, committed()) == {"a": "sha of a", "b": "sha of b"}


def test_not_by_another_attempt(night: RunFolder) -> None:
    """As by another run: what reads its rows is to be made again."""
    assert night.finished(STEPS, committed(**{A[1]: 2})) == {"b": "sha of b"}


def test_not_where_a_unit_is_planned_again(night: RunFolder) -> None:
    class Retried(Committed):
        def needs_retry(self, step: Step, unit: str) -> bool:
            return unit == B[1]

    assert night.finished(STEPS, Retried(committed().units, {})) == {"a": "sha of a"}


def test_not_where_a_step_is_none_of_the_launch(night: RunFolder) -> None:
    assert night.finished(STEPS[:1], committed()) == {}


def test_none_of_a_new_run_and_of_a_damaged_file(tmp_path: Path, night: RunFolder) -> None:
    assert RunFolder(tmp_path, "other").finished(STEPS, committed()) == {}
    file = tmp_path / "runs" / "night" / "units.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DamagedError):
        night.finished(STEPS, committed())


def test_kept_documents_stay_as_they_were_planned(tmp_path: Path, night: RunFolder) -> None:
    file, new = tmp_path / "runs" / "night" / "units.parquet", UPath(tmp_path / "new")
    before = read(file)
    assert [*write_plan(new, DOCUMENTS[2:])] == [True]
    assert night.missing_from(new, "document_id", {"a"}) == {"b"}
    assert night.missing_from(new, "question_id", {"a"}) == {"b-1", "b-2"}
    night.plan(STEPS, new, {"a"})
    assert read(file) == {row for row in before if row[2] != "b"}


def read(file: Path) -> set[tuple[object, ...]]:
    rows = pq.ParquetFile(file).read()
    assert rows.schema.names == PLANNED.names
    return {(*row.values(),) for row in rows.to_pylist()}
