"""Mean rates of an audit, and means corrected for a judge's mistakes: against scipy, by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from jobs.audit.judge_audit import (
    AuditedVerdict,
    corrected_interval,
    effective_size,
    exact_interval,
    mean_rate,
    rogan_gladen,
)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (7, 7), (3, 50), (49, 50), (1, 1)])
def test_intervals_of_shares_are_exact(k: int, n: int) -> None:
    theirs = binomtest(k, n).proportion_ci(method="exact")
    assert exact_interval(k / n, n) == pytest.approx((theirs.low, theirs.high))


def test_corrected_by_hand() -> None:
    """60 right of 100; of them 54 accepted, and 8 of the 40 wrong: 62."""
    assert rogan_gladen(0.62, sensitivity=0.9, specificity=0.8) == pytest.approx(0.6)
    assert (rogan_gladen(0.1, 0.9, 0.8), rogan_gladen(0.95, 0.9, 0.8)) == (0, 1)


def test_with_a_perfect_judge_it_is_the_interval_of_a_share() -> None:
    """Agresti and Coull (1998): of 62 of 100, 1.96 squared more answers, half of them right."""
    z = 1.959963984540054
    n, share = 100 + z * z, (62 + z * z / 2) / (100 + z * z)
    half = z * (share * (1 - share) / n) ** 0.5
    found = corrected_interval((0.62, 100), (1, 10**9), (1, 10**9))
    assert found == pytest.approx((share - half, share + half), abs=1e-6)


@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity"), [(0.6, 0.9, 0.8), (0.1, 0.7, 0.95)]
)
def test_it_holds_the_truth_as_often_as_it_says(
    truth: float, sensitivity: float, specificity: float
) -> None:
    draw = np.random.default_rng(1)
    n, n_audit, times = 150, 50, 1000
    observed = truth * sensitivity + (1 - truth) * (1 - specificity)
    held = 0
    for accepted, right, wrong in zip(
        draw.binomial(n, observed, times), draw.binomial(n_audit, sensitivity, times),
        draw.binomial(n_audit, specificity, times), strict=True,
    ):  # fmt: skip
        low, high = corrected_interval(
            (accepted / n, n), (right / n_audit, n_audit), (wrong / n_audit, n_audit)
        )
        held += low <= truth <= high
    assert 0.93 <= held / times <= 0.99


def test_documents_that_agree_in_themselves_are_worth_less() -> None:
    """By hand: 20 documents of 10 answers. All or none of each accepted is as 19 answers: the
    variance of the mean is 1/4 x 20/19 / 20; half of each is as good as all 200 answers."""
    assert effective_size([10, 0] * 10, [10] * 20) == pytest.approx(19)
    assert effective_size([5] * 20, [10] * 20) == effective_size([0] * 20, [10] * 20) == 200
    assert effective_size([5] * 9, [10] * 9) is None


@pytest.mark.parametrize(
    ("kinds", "mistakes", "n"),
    [
        # 5 of 10 and 3 of 30: 30%, as of 4 / (1/10 + 1/30) = 30 answers; there are 30 questions.
        ({"vague": (5, 10, 0), "refusal": (3, 30, 0)}, 30, 30),
        # 30 of 40 questions, and no more than there are of 20.
        ({"vague": (5, 10, 30), "refusal": (3, 30, 0)}, 30, 30),
        ({"vague": (5, 20, 0), "refusal": (3, 20, 0)}, 20, 20),
        # A kind of few answers does not count beside others: 4 / (1/9 + 1/3) = 9.
        ({"changed": (9, 9, 0), "refusal": (3, 30, 0)}, 10, 30),
        ({"changed": (9, 9, 0), "refusal": (0, 3, 0)}, 50, 9),
    ],
)
def test_every_kind_weighs_the_same(
    kinds: dict[str, tuple[int, int, int]], mistakes: float, n: float
) -> None:
    """By kind the number that was accepted, of how many wrong answers, from which question on."""
    verdicts = [
        AuditedVerdict("lr_1", kind, False, True, f"q{first + number}", number < accepted)
        for kind, (accepted, of, first) in kinds.items()
        for number in range(of)
    ]
    found = mean_rate(verdicts)
    assert found and found.mistakes == pytest.approx(mistakes) and found.n == n
    assert mean_rate([]) is None
