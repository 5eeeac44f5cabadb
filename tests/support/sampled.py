"""Which of the tests marked `sampled` run in CI: a third of them, and another third each day.

`make test`, `make test-slow` and `make chaos` run all of them; with CI=true they run the part of
the day in GISTMILL_DAY, by default today.
"""

import os
from collections.abc import Iterable
from datetime import date
from zlib import crc32

import pytest

_PARTS = 3
_DAY = "GISTMILL_DAY"


def keep_day() -> None:
    """Make the processes of one session agree on the day, past midnight, too."""
    os.environ.setdefault(_DAY, date.today().isoformat())


def is_of_day(name: str, day: date) -> bool:
    """True if a test of this name runs in CI on that day."""
    return (crc32(name.encode()) + day.toordinal()) % _PARTS == 0


def left_out_today(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The sampled tests of another day; none outside CI."""
    if os.environ.get("CI") != "true":
        return []
    day = date.fromisoformat(os.environ[_DAY])
    sampled = (item for item in items if item.get_closest_marker("sampled"))
    return [item for item in sampled if not is_of_day(item.nodeid, day)]
