"""What a reading comes to, on moments made by hand: seconds and CPU seconds."""

import pytest

from benchmarks.reading import Reading
from benchmarks.recorder import Moment, Recorded
from tests.support.engines.simulated import settings

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
