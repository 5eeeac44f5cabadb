"""Paired statistics: by hand, and against scipy."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from jobs.statistics.paired_test import DRAWS, MOST_ENUMERATED, holm, paired, sign_flip

# Four documents of 2, 1, 2 and 1 questions; a - b of each question beside it.
DOCUMENTS = ["w", "w", "x", "y", "y", "z"]
A = [100.0, 0.0, 50.0, 60.0, 30.0, 20.0]
B = [0.0, 60.0, 20.0, 40.0, 30.0, 30.0]  # +100, -60 | +30 | +20, 0 | -10: sums 40, 30, 20, -10
# All 16 ways to flip signs of 40, 30, 20 and 10, as totals; the one found is 40 + 30 + 20 - 10.
TOTALS = [
    100, 80, 60, 40, 40, 20, 0, -20,  # + first: ++++ +++- ++-+ ++-- +-++ +-+- +--+ +---
    20, 0, -20, -40, -40, -60, -80, -100,  # - first: -+++ -++- -+-+ -+-- --++ --+- ---+ ----
]  # fmt: skip


def test_a_case_worked_by_hand() -> None:
    """Of the 16 totals four are as far from 0 as 80: 100, 80, -80, -100."""
    found = paired(A, B, DOCUMENTS)
    assert sorted(TOTALS) == sorted(
        sum(s * d for s, d in zip(signs, (40, 30, 20, 10), strict=True))
        for signs in product((1, -1), repeat=4)
    )
    assert sum(abs(total) >= 80 for total in TOTALS) == 4
    assert (found.p, found.draws) == (4 / 16, None)
    assert (found.n, found.documents) == (6, 4)
    assert found.mean_a == pytest.approx(260 / 6)
    assert found.mean_b == pytest.approx(180 / 6)
    assert found.difference == pytest.approx(80 / 6)
    assert (found.wins, found.ties, found.losses) == (3, 1, 2)
    assert (found.low, found.high) == (None, None)


def scipys(a: Any, b: Any, most: float = np.inf) -> float:
    """scipy's test of pairs, a pair per document."""
    found = stats.permutation_test(
        (a, b), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples",
        n_resamples=most, vectorized=True, rng=np.random.default_rng(5),
    )  # fmt: skip
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(6))
def test_exact_p_values_are_scipys(seed: int) -> None:
    """Right and wrong answers with many equal totals, and graded ones; a question a document."""
    draw = np.random.default_rng(seed)
    size = 2 + 2 * seed
    for a, b in (
        (100.0 * draw.integers(0, 2, size), 100.0 * draw.integers(0, 2, size)),
        (100 * draw.random(size), 100 * draw.random(size)),
    ):
        found = paired(a.tolist(), b.tolist(), [f"d{n}" for n in range(size)])
        assert found.draws is None
        assert found.p == pytest.approx(scipys(a, b), abs=1e-12)


def test_drawn_p_values_are_near_scipys() -> None:
    draw = np.random.default_rng(8)
    a = 100 * draw.random(60)
    b = a + draw.normal(3, 12, 60)
    found = paired(a.tolist(), b.tolist(), [f"d{n}" for n in range(60)])
    assert found.draws == DRAWS
    assert 0.01 < found.p < 0.2
    assert found.p == pytest.approx(scipys(a, b, most=50_000), abs=5 * (0.1 / DRAWS) ** 0.5)


def test_drawn_p_values_are_never_zero_and_always_the_same() -> None:
    """All of 60 documents won: chance has 2 in 2**60, and the one found is counted in."""
    assert sign_flip([1.0] * 60) == (1 / (1 + DRAWS), DRAWS)
    values = [float(n % 7 - 2) for n in range(1000)]
    assert sign_flip(values) == sign_flip(values)


def test_documents_that_do_not_differ_take_no_part_in_the_test() -> None:
    """With 20 that do there are 2**20 flips, however many others stand beside them."""
    moving = [float(n) for n in range(1, MOST_ENUMERATED + 1)]
    p, draws = sign_flip([*moving, *[0.0] * 500])
    assert (p, draws) == (2 / 2**MOST_ENUMERATED, None)
    assert sign_flip([*moving, 1.0])[1] == DRAWS


def test_rounding_is_no_difference() -> None:
    """0.1 + 0.2 is not 0.3 in floats: a total of 0 must not look like one beside 0."""
    assert sign_flip([0.1, 0.2, -0.3]) == (1, None)
    found = paired([0.1 + 0.2, 200 / 3], [0.3, 100 - 100 / 3], ["d", "e"])
    assert (found.ties, found.p, found.difference) == (2, 1, 0)


def test_the_interval_of_pairs_is_scipys() -> None:
    """A question a document: the same resampling, seed and percentiles."""
    draw = np.random.default_rng(4)
    a, b = 100 * draw.random(30), 100 * draw.random(30)
    found = paired(a.tolist(), b.tolist(), [f"d{n:02}" for n in range(30)])
    expected = stats.bootstrap(
        (a, b), lambda a, b, axis: (a - b).mean(axis=axis), paired=True, n_resamples=2000,
        method="percentile", rng=np.random.default_rng(0), vectorized=True,
    ).confidence_interval  # fmt: skip
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        # Sorted: 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1, raised to 0.06.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2, 0.6, 0.5], [0.6, 1, 1]),  # 0.2 x 3, 0.5 x 2, 0.6 x 1 raised to 1
        ([0.02, 0.02], [0.04, 0.04]),
        ([0.5, 0.6], [1, 1]),
        ([0.04], [0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)
