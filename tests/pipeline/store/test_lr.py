"""The `lr` view: what two verdicts, and several references, add up to. All worked by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import Problem
from pipeline.store import connect
from pipeline.store.sql.connection import query
from stages.tables.answers import Label, Rating, Rubric
from tests.support.runs.warehouse import Warehouse, answer, chunk, step

ANSWERS, RATINGS = step("answers", "m"), step("ratings", "m")
Verdicts = tuple[Label | None, Label | None]  # strict, permissive

YES: Verdicts = ("yes", "yes")
PARTLY: Verdicts = ("no", "partially")
NO: Verdicts = ("no", "no")
UNREAD: Verdicts = (None, None)
# One reference. Exact where either says yes; partial or none only where both could be read.
ONE: dict[Verdicts, str] = {
    ("yes", "yes"): "exact", ("yes", "partially"): "exact", ("yes", "no"): "exact",
    ("yes", None): "exact", ("no", "yes"): "exact", ("no", "partially"): "partial",
    ("no", "no"): "none", ("no", None): "unscored", (None, "yes"): "exact",
    (None, "partially"): "unscored", (None, "no"): "unscored", (None, None): "unscored",
}  # fmt: skip
# Several references: exact wins, else any unscored, else partial, else none.
SEVERAL: dict[tuple[Verdicts, ...], str] = {
    (NO, YES): "exact", (UNREAD, YES): "exact", (PARTLY, YES, NO, UNREAD): "exact",
    (PARTLY, UNREAD): "unscored", (UNREAD, NO): "unscored", (NO, PARTLY, UNREAD): "unscored",
    (NO, PARTLY): "partial", (PARTLY, PARTLY): "partial", (NO, NO, NO): "none",
}  # fmt: skip
CASES = [*(((verdicts,), lr) for verdicts, lr in ONE.items()), *SEVERAL.items()]


def rated(
    question_id: str, reference: int, verdicts: Verdicts = UNREAD, problem: Problem | None = None
) -> list[Rating]:
    """The rows of both verdicts."""
    rubrics: tuple[Rubric, Rubric] = ("strict", "permissive")
    return [
        Rating(document_id="d1", question_id=question_id, rater="judge", rater_is_model=True,
               rubric=rubric, label=label, reference_index=reference,
               problem=problem or (None if label else "unparseable"))
        for rubric, label in zip(rubrics, verdicts, strict=True)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A question a case: c0, c1 ...; `up` had no answer to rate, `choice` nothing to rate by."""
    warehouse = Warehouse(tmp_path_factory.mktemp("lr"))
    names = [f"c{number}" for number in range(len(CASES))]
    ratings = [
        row
        for name, (references, _) in zip(names, CASES, strict=True)
        for index, verdicts in enumerate(references)
        for row in rated(name, index, verdicts)
    ]
    ratings += rated("up", 0, problem="upstream")
    ratings += [Rating(document_id="d1", question_id="choice", rater="judge", rater_is_model=True,
                       skipped=True)]  # fmt: skip
    answers = [answer(name) for name in names]
    answers += [answer("up", answer=None, problem="timeout"), answer("choice")]
    answered = chunk(ANSWERS, "d1", *names, "up", "choice")
    judged = chunk(RATINGS, "d1", *names, "up", "choice")
    warehouse.commit(ANSWERS, answered, answers)
    warehouse.commit(RATINGS, judged, ratings)
    warehouse.plan("r", (ANSWERS, [answered]), (RATINGS, [judged]))
    return warehouse


def test_verdicts_add_up(warehouse: Warehouse) -> None:
    """A missing answer counts as none; what cannot be rated is left out."""
    lr_of = {**{f"c{number}": lr for number, (_, lr) in enumerate(CASES)}, "up": "none"}
    with connect(warehouse.folder) as connection:
        for view in ("lr", "all_lr"):
            rows = query(connection, f"select question_id, lr from {view}")
            assert len(rows) == len(lr_of)
            assert {row["question_id"]: row["lr"] for row in rows} == lr_of


def test_lr_1_and_lr_2_by_hand(warehouse: Warehouse) -> None:
    """22 answers: 9 exact (6 of one reference, 3 of several), 3 partial, 3 none; 7 unscored ones
    are in no mean."""
    means = """select measure, count(*) as n, avg(value) as mean from measures
    where measure in ('lr_1', 'lr_2') group by all order by measure"""
    with connect(warehouse.folder) as connection:
        rows = [tuple(row.values()) for row in query(connection, means)]
    assert rows == [("lr_1", 15, pytest.approx(60)), ("lr_2", 15, pytest.approx(80))]


def test_a_failed_unit_of_a_rater_is_unscored_and_in_no_mean(tmp_path: Path) -> None:
    """Its rows name no rater; its step's other rows do."""
    warehouse = Warehouse(tmp_path)
    failed = [
        replace(row, rater="", rater_is_model=False)
        for row in rated("q2", 0, problem="unit_failed")
    ]
    answered, whole = chunk(ANSWERS, "d1", "q1", "q2"), chunk(RATINGS, "d1", "q1")
    broken = chunk(RATINGS, "d1", "q2")
    warehouse.commit(ANSWERS, answered, [answer("q1"), answer("q2")])
    warehouse.commit(RATINGS, whole, rated("q1", 0, YES))
    warehouse.commit(RATINGS, broken, failed)
    warehouse.plan("r", (ANSWERS, [answered]), (RATINGS, [whole, broken]))
    with connect(warehouse.folder) as connection:
        rows = query(connection, "select question_id, rater, lr from lr order by 1")
        means = query(connection, "select avg(value) as lr_1 from measures where measure = 'lr_1'")
    assert [row["lr"] for row in rows] == ["exact", "unscored"]
    assert {row["rater"] for row in rows} == {"judge"}
    assert means == [{"lr_1": 100.0}]
