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


def test_a_figure_is_printed_with_its_bar_and_what_it_is_a_median_of() -> None:
    assert figure_of("limit", "a ratio", [1.0, 2.0, 1.2], ("at most", 1.1)).row() == {
        "part": "limit", "what": "a ratio", "figure": "1.200", "bar": "at most 1.10", "ok": "no",
        "median of": "1.000 2.000 1.200",
    }  # fmt: skip


def test_a_figure_without_a_bar_is_neither_good_nor_bad() -> None:
    row = figure_of("limit", "a ratio", [2.0]).row()
    assert (row["figure"], row["bar"], row["ok"], row["median of"]) == ("2.000", None, None, None)
