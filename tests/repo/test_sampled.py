"""CI runs a part of the sampled and of the slow tests, and every one of them within days."""

from datetime import date, timedelta

import pytest

from tests.support.sampled import of_day

FAULTS = [f"tests/faults/test_faults.py::test_a_fault[{number}]" for number in range(30)]
ALONE = [f"tests/faults/test_{number}.py::test_a_kill" for number in range(300)]
DAYS = [date(2026, 12, 31) + timedelta(days=number) for number in range(8)]


@pytest.mark.parametrize("parts", [5, 8])
@pytest.mark.parametrize("names", [FAULTS, FAULTS[:2], ALONE])
def test_every_test_runs_once_in_so_many_days(names: list[str], parts: int) -> None:
    run = [name for day in DAYS[:parts] for name in of_day(names, day, parts)]
    assert sorted(run) == sorted(names)


def test_a_day_has_its_part() -> None:
    for day in DAYS:
        assert len(of_day(FAULTS, day, 5)) == 6
        assert 35 < len(of_day(ALONE, day, 5)) < 85
