"""The mean rates of an audit, worked by hand."""

import pytest

from jobs.audit.judge_audit import JudgeAudit, Rate, Verdict, audit_parts, mean_rate
from pipeline.work.stage import Column


def verdicts(kind: str, accepted: int, of: int, first: int = 0) -> list[Verdict]:
    """Verdicts on wrong answers to the questions from `first` on."""
    return [Verdict("lr_1", kind, False, True, f"q{first + n}", n < accepted) for n in range(of)]


def test_every_kind_weighs_the_same() -> None:
    """5 of 10 and 3 of 30: 30%, as of 4 / (1/10 + 1/30) = 30 answers; there are 30 questions."""
    found = mean_rate([*verdicts("vague", 5, 10), *verdicts("refusal", 3, 30)])
    assert found and found.mistakes == pytest.approx(30) and found.n == 30
    # 4 / (1/10 + 1/30) = 30 of 40 questions, and no more than there are of 20.
    others = mean_rate([*verdicts("vague", 5, 10, first=30), *verdicts("refusal", 3, 30)])
    assert others and others.n == 30
    alike = mean_rate([*verdicts("vague", 5, 20), *verdicts("refusal", 3, 20)])
    assert alike and alike.n == 20


def test_a_kind_of_few_answers_does_not_count_beside_others() -> None:
    found = mean_rate([*verdicts("changed", 9, 9), *verdicts("refusal", 3, 30)])
    assert found and found.mistakes == pytest.approx(10) and found.n == 30
    few = mean_rate([*verdicts("changed", 9, 9), *verdicts("refusal", 0, 3)])
    assert few and few.mistakes == pytest.approx(50)
    assert mean_rate([]) is None


def test_a_part_of_an_audit_says_so() -> None:
    rate = Rate("lr_1", "vague", False, True, 9, 0.0, 0.0, 33.6)
    audit = JudgeAudit("judge", "run night-audit", 9, (rate,), (), (), (), not_done=4)
    parts = [*audit_parts([audit], [Column("lr_1", "LR-1", 30)])]
    assert str(parts[2]).startswith(
        "INCOMPLETE: 4 inputs of the audit are not done, so that no mean"
    )
    assert [*audit_parts([audit], [Column("em", "em", 40)])] == [], "it is not of these columns"
