"""Which tests run in CI (CI=true) on the day in GISTMILL_DAY, by default today: a fifth of those
marked `sampled`, an eighth of the other slow ones, and all that is quick or in tests/repo."""

import os
from collections.abc import Iterable
from datetime import date
from zlib import crc32

import pytest

# The days within which each test with the mark runs. A machine of two slow cores takes 60 minutes
# for all that is slow, which CI has not.
_DAYS = {"sampled": 5, "slow": 8}
_DAY = "GISTMILL_DAY"


def keep_day() -> None:
    """Make the processes of one session agree on the day, past midnight, too."""
    os.environ.setdefault(_DAY, date.today().isoformat())


def of_day(names: Iterable[str], day: date, parts: int) -> list[str]:
    """The tests, of those with these names, that run in CI on that day: one case of a function in
    `parts`, so that no day has most of the cases of one that takes long."""
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(name.partition("[")[0], []).append(name)
    return [
        name
        for function, named in cases.items()
        for name in named[-(crc32(function.encode()) + day.toordinal()) % parts :: parts]
    ]


def left_out_today(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests of other days; none outside CI."""
    if os.environ.get("CI") != "true":
        return []
    day = date.fromisoformat(os.environ[_DAY])
    marked: dict[str, dict[str, pytest.Item]] = {mark: {} for mark in _DAYS}
    for item in items:
        if item.get_closest_marker("sampled"):
            marked["sampled"][item.nodeid] = item
        elif item.get_closest_marker("slow") and not item.nodeid.startswith("tests/repo/"):
            marked["slow"][item.nodeid] = item
    of_today = {name for mark, days in _DAYS.items() for name in of_day(marked[mark], day, days)}
    return [
        item for named in marked.values() for name, item in named.items() if name not in of_today
    ]
