"""Figures are medians with bars; what readings and dealings come to, on moments made by hand."""

import pytest

from benchmarks.dealing import shortest
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


def test_the_bound_is_all_work_or_the_longest_chain() -> None:
    assert shortest([10, 2, 2, 2], 2, 1) == 16  # 32 calls among two sequences
    assert shortest([10, 2, 2, 2], 8, 8) == 11  # ten pages and a gist
