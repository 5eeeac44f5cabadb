"""CI runs a part of the sampled tests, and every one of them within three days."""

from datetime import date, timedelta

from tests.support.sampled import is_of_day

NAMES = [f"tests/faults/test_faults.py::test_a_fault[{number}]" for number in range(300)]
DAYS = [date(2026, 12, 31) + timedelta(days=number) for number in range(3)]


def test_every_test_runs_once_in_three_days() -> None:
    assert [sum(is_of_day(name, day) for day in DAYS) for name in NAMES] == [1] * len(NAMES)


def test_a_day_has_about_a_third() -> None:
    for day in DAYS:
        assert 70 < sum(is_of_day(name, day) for name in NAMES) < 130
