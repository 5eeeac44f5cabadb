"""Markers of attempts: what is left over tells of a crash, and of nothing else; what a document
that kills its workers costs."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

import pytest

from pipeline.core.errors import AccountingError, EngineError, StartError
from pipeline.worker.crashes import Crashes, InFlight, Placement

NONE, ALONE = Crashes(), Crashes(together=1)


def of(folder: Path, item: str, lost: str = "") -> Crashes:
    """What a new process knows of an item's crashes."""
    return InFlight(folder, Placement("w1", "m9", lambda name: name == lost)).crashes(item)


def crash(folder: Path, items: Sequence[str], crashes: Crashes = NONE, machine: str = "m1",
          unit: str | None = None) -> None:  # fmt: skip
    """A process that dies with these items in flight; alone in `unit`, or between units."""

    async def die() -> None:
        in_flight = InFlight(folder, Placement("w1", machine))
        async with AsyncExitStack() as stack:
            for item in items:
                attempt = await stack.enter_async_context(in_flight.attempt(item, crashes))
            if unit:
                await stack.enter_async_context(attempt.unit(unit))
            raise EngineError("dead")

    with pytest.raises(EngineError):
        asyncio.run(die())


def test_what_ends_in_order_leaves_nothing(tmp_path: Path) -> None:
    async def attempts() -> None:
        in_flight = InFlight(tmp_path, Placement("w1"))
        async with in_flight.attempt("d1", NONE):
            assert len([*tmp_path.glob("*/*.json")]) == 1, "on record while it lasts"
            assert in_flight.crashes("d1") == NONE, "of another process it would be one"
            assert of(tmp_path, "d1") == ALONE
        with pytest.raises(AccountingError):
            async with in_flight.attempt("d1", NONE):
                raise AccountingError("rows do not add up")

    asyncio.run(attempts())
    assert not list(tmp_path.iterdir())


def test_fewer_are_together_after_every_crash(tmp_path: Path) -> None:
    """Bystanders of a crash are many the first time, and count from the first."""
    items = [f"d{number}" for number in range(164)]
    together = list[int | None]()
    while not of(tmp_path, "d0").is_alone:
        crash(tmp_path, [*items[: of(tmp_path, "d0").together], "other"])
        together.append(of(tmp_path, "d0").together)
    assert together == [41, 10, 2, 1]
    assert [of(tmp_path, name).together for name in ("d20", "d163", "none")] == [10, 41, None]


def test_what_is_alone_is_blamed_by_unit(tmp_path: Path) -> None:
    for unit in ("gist/1", "gist/1", "look_up/2", None):
        crash(tmp_path, ["d1"], ALONE, unit=unit)
    crashes = of(tmp_path, "d1")
    assert crashes.alone == {"gist/1": 2, "look_up/2": 1, "": 1}
    assert [crashes.give_up(unit) for unit in ("gist/1", "look_up/2", "")] == [True, False, False]
    crash(tmp_path, ["d2", "d3"])
    assert not of(tmp_path, "d2").alone, "in company it may have been another's fault"


def test_units_that_are_cut_off_by_a_crash_are_not_blamed(tmp_path: Path) -> None:
    """The next unit has its turn while the news of the death still travels."""

    async def die() -> None:
        async with InFlight(tmp_path, Placement("w1")).attempt("d1", ALONE) as attempt:
            with pytest.raises(EngineError):
                async with attempt.unit("gist/1"):
                    raise EngineError("dead")
            async with attempt.unit("look_up/2"):
                pass
            raise EngineError("dead")

    with pytest.raises(EngineError):
        asyncio.run(die())
    assert of(tmp_path, "d1").alone == {"gist/1": 1}


def test_a_lost_machine_and_another_launch_are_no_crash(tmp_path: Path) -> None:
    crash(tmp_path / "monday", ["d1", "d2"], machine="m1")
    assert of(tmp_path / "monday", "d1", lost="m1") == of(tmp_path / "tuesday", "d1") == NONE
    crash(tmp_path / "monday", ["d1", "d2"], machine="m2")
    assert of(tmp_path / "monday", "d1", lost="m1").is_alone


@pytest.mark.parametrize("text", ["", "[]", '{"unit": 3}'])
def test_torn_markers_and_foreign_files_break_nothing(tmp_path: Path, text: str) -> None:
    crash(tmp_path, ["d1"], ALONE)
    (torn,) = tmp_path.glob("*/*.json")
    torn.write_text(text)
    for folder in (torn.parent, tmp_path):
        (folder / "notes.txt").write_text(text)
    assert of(tmp_path, "d1") == ALONE, "a crash all the same, of which unit is not known"


def test_storage_that_refuses_markers_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    async def attempt() -> str:
        in_flight = InFlight(tmp_path / "file" / "launch", Placement("w1"))
        async with in_flight.start(), in_flight.attempt("d1", ALONE) as marker, marker.unit("g/1"):
            return "done"

    assert asyncio.run(attempt()) == "done"


def start(folder: Path, worker: str = "w1", dies: bool = False, lost: str = "") -> None:
    """A start of an engine, during which the process may die."""

    async def started() -> None:
        placement = Placement(worker, "m1", lambda name: name == lost)
        async with InFlight(folder, placement).start():
            if dies:
                raise EngineError("dead")

    with pytest.raises(EngineError, match="dead") if dies else nullcontext():
        asyncio.run(started())


def test_an_engine_whose_process_dies_is_started_three_times_at_most(tmp_path: Path) -> None:
    """A start that only fails is no crash, and one that succeeds ends the count."""
    for dies in (True, False, True, False):
        start(tmp_path, dies=dies)
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        start(tmp_path, dies=True)
    with pytest.raises(StartError, match="died 2 times while it started"):
        start(tmp_path)
    start(tmp_path, worker="another")
    start(tmp_path, lost="m1")
