"""Figures are medians with bars; what readings and dealings come to, on moments made by hand."""

import pytest

from benchmarks.dealing import Dealing, shortest
from benchmarks.figures import Bar, figure_of
from benchmarks.reading import Reading
from benchmarks.recorder import Moment, Recorded
from tests.support.engines.simulated import settings


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


DRIVER = [Moment(100.0, 7.0), Moment(101.0, 7.5), Moment(102.0, 7.75), Moment(110.0, 9.0),
          Moment(111.0, 9.25)]  # fmt: skip
WORKERS = [
    Recorded(Moment(101.0, 1.0), (), Moment(109.0, 4.0)),
    Recorded(Moment(102.5, 1.5), (), Moment(110.0, 2.0)),
]
READING = Reading(settings(), DRIVER, WORKERS, ())


def test_a_reading_begins_when_its_engines_are_ready_on_average() -> None:
    assert READING.ready == 101.75
    assert READING.seconds == 110.0 - 101.75


def test_cpu_seconds_are_those_of_driver_and_workers_meanwhile() -> None:
    # Of the driver since its last moment before 101.75, of each worker since its engine is ready.
    assert READING.cpu == pytest.approx((9.0 - 7.5) + (4.0 - 1.0) + (2.0 - 1.5))


@pytest.mark.parametrize(
    ("pages", "engines", "sequences", "calls_in_a_row"),
    [
        ([3], 1, 8, 4),  # three pages, and the last one's gist beside nothing
        ([1] * 8, 1, 1, 16),  # one after the other
        ([1] * 8, 2, 1, 8),  # half of them each
        ([4, 1], 2, 1, 8),  # one each
        ([5] * 64, 64, 8, 6),
    ],
)
def test_what_waits_for_what(
    pages: list[int], engines: int, sequences: int, calls_in_a_row: int
) -> None:
    found = Dealing(pages, engines, sequences).seconds()
    assert 0.8 * calls_in_a_row <= found <= 1.2 * calls_in_a_row


def test_the_bound_is_all_work_or_the_longest_chain() -> None:
    assert shortest([10, 2, 2, 2], 2, 1) == 16  # 32 calls among two sequences
    assert shortest([10, 2, 2, 2], 8, 8) == 11  # ten pages and a gist
