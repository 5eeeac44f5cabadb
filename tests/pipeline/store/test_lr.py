"""The `lr` view: what two verdicts, and several references, add up to. All worked by hand."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import Problem
from pipeline.store import connect
from pipeline.store.sql.connection import query
from stages.tables.answers import Label, Rating
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
    return [
        Rating.about(
            answer(question_id), rater="judge", rater_is_model=True, rubric=rubric, label=label,
            reference_index=reference, problem=problem or (None if label else "unparseable"),
        )
        for rubric, label in zip(("strict", "permissive"), verdicts, strict=True)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A question a case: c0, c1 ...; `up` had no answer to rate, `choice` nothing to rate by; of
    `failed` the rater's unit failed, whose rows name no rater."""
    warehouse = Warehouse(tmp_path_factory.mktemp("lr"))
    ratings = [
        row
        for number, (references, _) in enumerate(CASES)
        for index, verdicts in enumerate(references)
        for row in rated(f"c{number}", index, verdicts)
    ]
    ratings += rated("up", 0, problem="upstream")
    ratings += [Rating.about(answer("choice"), rater="judge", rater_is_model=True, skipped=True)]
    failed = [replace(row, rater="", rater_is_model=False)
              for row in rated("failed", 0, problem="unit_failed")]  # fmt: skip
    names = [*(f"c{number}" for number in range(len(CASES))), "choice"]
    answers = [*map(answer, names), answer("up", answer=None, problem="timeout"), answer("failed")]
    answered = chunk(ANSWERS, "d1", *names, "up", "failed")
    judged = chunk(RATINGS, "d1", *names, "up")
    broken = chunk(RATINGS, "d1", "failed")
    warehouse.commit(ANSWERS, answered, answers)
    warehouse.commit(RATINGS, judged, ratings)
    warehouse.commit(RATINGS, broken, failed)
    warehouse.plan("r", (ANSWERS, [answered]), (RATINGS, [judged, broken]))
    return warehouse


def test_verdicts_add_up(warehouse: Warehouse) -> None:
    """A missing answer counts as none; what cannot be rated is left out; what a rater failed on is
    unscored, by the rater of its step's other rows."""
    expected = {f"c{number}": lr for number, (_, lr) in enumerate(CASES)}
    expected |= {"up": "none", "failed": "unscored"}
    with connect(warehouse.folder) as connection:
        for view in ("lr", "all_lr"):
            rows = query(connection, f"select question_id, lr, rater from {view} order by 1")
            of_rows = [tuple(row.values()) for row in rows]
            assert of_rows == sorted((name, lr, "judge") for name, lr in expected.items())


def test_lr_1_and_lr_2_by_hand(warehouse: Warehouse) -> None:
    """23 answers: 9 exact (6 of one reference, 3 of several), 3 partial, 3 none; 8 unscored ones
    are in no mean."""
    means = """select measure, count(*) as n, avg(value) as mean from measures
    where measure in ('lr_1', 'lr_2') group by all order by measure"""
    with connect(warehouse.folder) as connection:
        rows = [tuple(row.values()) for row in query(connection, means)]
    assert rows == [("lr_1", 15, pytest.approx(60)), ("lr_2", 15, pytest.approx(80))]
