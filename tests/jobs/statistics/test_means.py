"""The interval over documents against a plain resampling, the spread by hand."""

import math
import random
import statistics

import pytest

from jobs.statistics.means import LEAST_DOCUMENTS, interval, sd

# 12 documents of 1 to 12 questions; per document the sum of 0-100 scores and their number.
COUNTS = list(range(1, 13))
SUMS = [100.0 * (7 * n % 5) * n / 8 for n in COUNTS]


def plainly_resampled(sums: list[float], counts: list[int], times: int) -> tuple[float, float]:
    """Documents drawn with replacement, 2.5th and 97.5th percentile of the mean over questions."""
    draw = random.Random(11)
    means = []
    for _ in range(times):
        chosen = [draw.randrange(len(sums)) for _ in sums]
        means.append(sum(sums[i] for i in chosen) / sum(counts[i] for i in chosen))
    means.sort()
    return means[round(0.025 * times)], means[round(0.975 * times)]


def test_the_interval_is_that_of_resampled_documents() -> None:
    found = interval(SUMS, COUNTS)
    assert found is not None
    expected = plainly_resampled(SUMS, COUNTS, 20_000)
    width = expected[1] - expected[0]
    assert found[0] == pytest.approx(expected[0], abs=0.06 * width)
    assert found[1] == pytest.approx(expected[1], abs=0.06 * width)
    assert found[0] < sum(SUMS) / sum(COUNTS) < found[1]


def test_documents_are_drawn_not_questions() -> None:
    """Ten documents, each all right or all wrong: were their 1,000 questions drawn one by one,
    the interval would be about 100 * 2 * 1.96 * sqrt(0.25 / 1000) = 6.2 wide."""
    found = interval([0.0, 10_000.0] * 5, [100] * 10)
    assert found is not None
    # By hand: the number right of 10 is binomial(10, 0.5), whose 95% lie within 2..8.
    assert list(found) == pytest.approx([20.0, 80.0])


def test_nothing_is_said_below_ten_documents() -> None:
    assert LEAST_DOCUMENTS == 10
    assert interval(SUMS[:9], COUNTS[:9]) is None
    assert interval(SUMS[:10], COUNTS[:10]) is not None
    assert interval([], []) is None


def test_spread_by_hand() -> None:
    # Means 40, 50, 60: squared distances 100 + 0 + 100 over n - 1 = 2.
    assert sd([40.0, 50.0, 60.0]) == pytest.approx(10.0)
    assert sd([1.0, 2.0]) == pytest.approx(math.sqrt(0.5))
    assert sd([3.0, 3.0, 3.0]) == 0.0
    assert sd([4.0, 7.0, 13.0, 16.0]) == pytest.approx(statistics.stdev([4.0, 7.0, 13.0, 16.0]))
