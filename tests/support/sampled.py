"""Which tests run in CI (CI=true) on the day in GISTMILL_DAY, by default today: a fifth of those
marked `sampled`, an eighth of the other slow ones, and all that is quick or in tests/repo."""

import os
from collections import defaultdict
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


def left_out_today(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests of other days; none outside CI. Of a function's cases one in so many runs, so that
    no day has most of the cases of one that takes long."""
    if os.environ.get("CI") != "true":
        return []
    today = date.fromisoformat(os.environ[_DAY]).toordinal()
    cases: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases["sampled", item.nodeid.partition("[")[0]].append(item)
        elif item.get_closest_marker("slow") and not item.nodeid.startswith("tests/repo/"):
            cases["slow", item.nodeid.partition("[")[0]].append(item)
    return [
        item
        for (mark, function), alike in cases.items()
        for number, item in enumerate(alike)
        if number % _DAYS[mark] != -(crc32(function.encode()) + today) % _DAYS[mark]
    ]
