"""Which of the tests marked `sampled` run in CI: a fifth of them, and another fifth each day.

`make test`, `make test-slow` and `make chaos` run all of them; with CI=true they run the part of
the day in GISTMILL_DAY, by default today.
"""

import os
from collections.abc import Iterable
from datetime import date
from zlib import crc32

import pytest

_PARTS = 5
_DAY = "GISTMILL_DAY"


def keep_day() -> None:
    """Make the processes of one session agree on the day, past midnight, too."""
    os.environ.setdefault(_DAY, date.today().isoformat())


def of_day(names: Iterable[str], day: date) -> list[str]:
    """The tests, of those with these names, that run in CI on that day: every fifth case of a
    function, so that no day has most of the cases of one that takes long."""
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(name.partition("[")[0], []).append(name)
    return [
        name
        for function, named in cases.items()
        for name in named[-(crc32(function.encode()) + day.toordinal()) % _PARTS :: _PARTS]
    ]


def left_out_today(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The sampled tests of another day; none outside CI."""
    if os.environ.get("CI") != "true":
        return []
    day = date.fromisoformat(os.environ[_DAY])
    sampled = {item.nodeid: item for item in items if item.get_closest_marker("sampled")}
    of_today = {*of_day(sampled, day)}
    return [item for name, item in sampled.items() if name not in of_today]
