"""The `lr` view: what two verdicts, and several references, add up to. All worked by hand."""

from typing import Any

import pytest

from stages.tables.answers import Label, Rating
from tests.pipeline.store.test_views import values
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
    question_id: str, reference: int, verdicts: Verdicts = UNREAD, **more: Any
) -> list[Rating]:
    """The rows of both verdicts on an answer."""
    of_both = {"reference_index": reference, "rater": "judge", "rater_is_model": True}
    return [
        Rating.about(answer(question_id), rubric=rubric, label=label,
                     **{**of_both, "problem": None if label else "unparseable", **more})
        for rubric, label in zip(("strict", "permissive"), verdicts, strict=True)
    ]  # fmt: skip


def test_verdicts_add_up_and_so_do_lr_1_and_lr_2(warehouse: Warehouse) -> None:
    """A question a case: c0, c1 ...; `up` had no answer to rate, which counts as none, `choice`
    nothing to rate by, and is left out; of `failed` the rater's unit failed, whose rows name no
    rater: it is unscored, by the rater of its step's other rows."""
    ratings = [
        row
        for number, (references, _) in enumerate(CASES)
        for index, verdicts in enumerate(references)
        for row in rated(f"c{number}", index, verdicts)
    ]
    ratings += rated("up", 0, problem="upstream")
    ratings += [Rating.about(answer("choice"), rater="judge", rater_is_model=True, skipped=True)]
    failed = rated("failed", 0, problem="unit_failed", rater="", rater_is_model=False)
    names = [*(f"c{number}" for number in range(len(CASES))), "choice"]
    answers = [*map(answer, names), answer("up", answer=None, problem="timeout"), answer("failed")]
    answered = chunk(ANSWERS, "d1", *names, "up", "failed")
    judged = chunk(RATINGS, "d1", *names, "up")
    broken = chunk(RATINGS, "d1", "failed")
    warehouse.commit(ANSWERS, answered, answers)
    warehouse.commit(RATINGS, judged, ratings)
    warehouse.commit(RATINGS, broken, failed)
    warehouse.plan("r", (ANSWERS, [answered]), (RATINGS, [judged, broken]))
    expected = {f"c{number}": lr for number, (_, lr) in enumerate(CASES)}
    expected |= {"up": "none", "failed": "unscored"}
    for view in ("lr", "all_lr"):
        shown = values(warehouse, f"select question_id, lr, rater from {view} order by 1")
        assert shown == sorted((name, lr, "judge") for name, lr in expected.items())
    # 23 answers: 9 exact (6 of one reference, 3 of several), 3 partial, 3 none; 8 unscored ones are
    # in no mean.
    means = """select measure, count(*), avg(value) from measures
    where measure in ('lr_1', 'lr_2') group by all order by measure"""
    assert values(warehouse, means) == [
        ("lr_1", 15, pytest.approx(60)), ("lr_2", 15, pytest.approx(80)),
    ]  # fmt: skip
