"""Records of attempts: what is left over tells of a death, and of nothing else."""

from pathlib import Path

import pytest

from pipeline.errors import AccountingError, EngineError, StartError
from pipeline.in_flight import InFlightMarkers


def die(attempts: InFlightMarkers, item: str, alone: bool, unit: str | None) -> None:
    """An attempt that ends with its engine, while it works on `unit` (null: between units)."""
    with pytest.raises(EngineError), attempts.attempt(item, alone) as attempt:
        if unit is None:
            raise EngineError("dead")
        with attempt.unit(unit):
            raise EngineError("dead")


def test_what_ends_in_order_leaves_nothing(tmp_path: Path) -> None:
    attempts = InFlightMarkers(tmp_path)
    with attempts.attempt("d1", alone=False):
        assert attempts.crashes("d1").total == 1, "on record while it lasts"
    with pytest.raises(AccountingError), attempts.attempt("d1", alone=False):
        raise AccountingError("rows do not add up")
    assert attempts.crashes("d1").total == 0
    assert not list(tmp_path.iterdir())


def test_a_death_in_company_gives_nothing_up(tmp_path: Path) -> None:
    attempts = InFlightMarkers(tmp_path)
    for _ in range(5):
        die(attempts, "d1", alone=False, unit="gist/1")
    assert attempts.crashes("d1").total == 5
    assert not attempts.crashes("d1").give_up("gist/1")
    assert attempts.crashes("d2").total == 0


def test_two_deaths_alone_give_up_the_unit_and_no_other(tmp_path: Path) -> None:
    attempts = InFlightMarkers(tmp_path)
    die(attempts, "d1", alone=True, unit="gist/1")
    assert not attempts.crashes("d1").give_up("gist/1")
    die(attempts, "d1", alone=True, unit="gist/1")
    die(attempts, "d1", alone=True, unit="look_up/2")
    deaths = attempts.crashes("d1")
    assert [deaths.give_up(unit) for unit in ("gist/1", "look_up/2", "answer/3")] == [
        True, False, False,
    ]  # fmt: skip


def test_units_that_are_cut_off_by_a_death_are_not_blamed(tmp_path: Path) -> None:
    """The next unit has its turn while the news of the death still travels."""
    attempts = InFlightMarkers(tmp_path)
    with pytest.raises(EngineError), attempts.attempt("d1", alone=True) as attempt:
        with pytest.raises(EngineError), attempt.unit("gist/1"):
            raise EngineError("dead")
        with attempt.unit("look_up/2"):
            pass
        raise EngineError("dead")
    assert attempts.crashes("d1").alone == {"gist/1": 1}


def test_two_deaths_between_units_give_up_all_of_them(tmp_path: Path) -> None:
    attempts = InFlightMarkers(tmp_path)
    for _ in range(2):
        die(attempts, "d1", alone=True, unit=None)
    assert attempts.crashes("d1").give_up("gist/1")


def test_a_launch_knows_nothing_of_another(tmp_path: Path) -> None:
    die(InFlightMarkers(tmp_path / "monday"), "d1", alone=True, unit=None)
    assert InFlightMarkers(tmp_path / "tuesday").crashes("d1").total == 0


def test_an_engine_is_started_three_times_at_most(tmp_path: Path) -> None:
    """A start that only fails is no death; two processes that end in it are enough."""
    attempts = InFlightMarkers(tmp_path)
    for _ in range(3):
        with pytest.raises(StartError, match="no memory"), attempts.start("w1"):
            raise StartError("no memory")
    left = [attempts.start("w1") for _ in range(2)]
    for start in left:
        start.__enter__()  # and the process ends here
    with pytest.raises(StartError, match="died 2 times while it started"), attempts.start("w1"):
        pass


def test_workers_that_start_at_the_same_time_are_no_deaths(tmp_path: Path) -> None:
    attempts = InFlightMarkers(tmp_path)
    left = [attempts.start(f"w{number}") for number in range(8)]
    for start in left:
        start.__enter__()
    with attempts.start("w8"):
        pass
