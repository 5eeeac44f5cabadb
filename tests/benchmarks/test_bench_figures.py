"""Figures are medians, and a bar is met, missed or not there."""

import pytest

from benchmarks.figures import Bar, figure_of


@pytest.mark.parametrize(
    ("bar", "ok"),
    [
        (("at most", 1.1), True),
        (("at most", 1.05), False),
        (("at least", 1.1), True),
        (("at least", 1.11), False),
        (("over", 1.09), True),
        (("over", 1.1), False),
    ],
)
def test_the_median_meets_a_bar_or_does_not(bar: tuple[Bar, float], ok: bool) -> None:
    figure = figure_of("limit", "a ratio", [1.0, 1.1, 9.0], bar)
    assert (figure.figure, figure.ok) == (1.1, ok)
