"""Records of attempts: what is left over tells of a crash, and of nothing else."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from upath import UPath

from pipeline.core.errors import AccountingError, EngineError, StartError
from pipeline.files.place import list_paths
from pipeline.worker.in_flight import Crashes, InFlightMarkers, Placement


def in_a_loop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    """The test, run in an event loop of its own."""

    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    return run


def markers(folder: Path, worker: str = "w1") -> InFlightMarkers:
    """The markers of a new process."""
    return InFlightMarkers(folder, Placement(worker))


def files(folder: Path) -> list[Path]:
    """All files below the folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def of(folder: Path, item: str, lost: frozenset[str] = frozenset()) -> Crashes:
    """What a new process knows of an item's crashes."""
    machine = Placement("w1", "m9", lambda name: name in lost)
    return InFlightMarkers(folder, machine).crashes(item)


def crash(folder: Path, limits: Mapping[str, int | None], machine: str = "m1") -> None:
    """A process that dies with these items in flight."""

    async def die() -> None:
        markers = InFlightMarkers(folder, Placement("w1", machine))
        async with AsyncExitStack() as stack:
            for item, limit in limits.items():
                await stack.enter_async_context(markers.attempt(item, limit))
            raise EngineError("dead")

    with pytest.raises(EngineError):
        asyncio.run(die())


async def die(folder: Path, item: str, unit: str | None) -> None:
    """An attempt alone that ends with its engine in `unit` (null: between units)."""
    with pytest.raises(EngineError):
        async with markers(folder).attempt(item, 1) as attempt:
            if unit is None:
                raise EngineError("dead")
            async with attempt.unit(unit):
                raise EngineError("dead")


@in_a_loop
async def test_what_ends_in_order_leaves_nothing(tmp_path: Path) -> None:
    own = markers(tmp_path)
    async with own.attempt("d1", None):
        assert len(list(tmp_path.iterdir())) == 1, "on record while it lasts"
        assert own.crashes("d1").limit is None, "of another process it would be one"
        assert markers(tmp_path).crashes("d1").limit == 1
    with pytest.raises(AccountingError):
        async with own.attempt("d1", None):
            raise AccountingError("rows do not add up")
    assert not list(tmp_path.iterdir())


def test_a_group_halves_with_every_crash(tmp_path: Path) -> None:
    """324 documents at once: 162, 81, 40, 20, 10, 5, 2 and 1 may be together next."""
    items, found = [f"d{number}" for number in range(324)], []
    limit: int | None = None
    while limit != 1:
        crash(tmp_path, dict.fromkeys(items[:limit], limit))
        limit = of(tmp_path, "d0").limit
        found.append(limit)
    assert found == [162, 81, 40, 20, 10, 5, 2, 1]
    assert of(tmp_path, "d5").limit == 5 and of(tmp_path, "d323").limit == 162
    assert of(tmp_path, "another").limit is None


def test_bystanders_are_not_counted_among_suspects(tmp_path: Path) -> None:
    """Four suspects of ten at most, beside 90 that no crash has seen."""
    crash(tmp_path, {f"s{n}": 10 for n in range(4)} | {f"d{n}": None for n in range(90)})
    assert of(tmp_path, "s0").limit == 2
    assert of(tmp_path, "d0").limit == 47


def test_a_crash_in_company_gives_nothing_up(tmp_path: Path) -> None:
    for _ in range(5):
        crash(tmp_path, {"d1": 2, "d2": 2})
    assert not of(tmp_path, "d1").alone and not of(tmp_path, "d1").give_up("gist/1")


def test_a_lost_machine_is_no_crash(tmp_path: Path) -> None:
    crash(tmp_path, {"d1": None, "d2": None}, machine="m1")
    assert of(tmp_path, "d1", lost=frozenset({"m1"})).limit is None
    crash(tmp_path, {"d1": None, "d2": None}, machine="m2")
    assert of(tmp_path, "d1", lost=frozenset({"m1"})).limit == 1


@pytest.mark.parametrize("text", ["", '{"item": "d1", "un', "[]", "\0\0", '{"unit": 3}'])
def test_torn_and_foreign_markers_break_nothing(tmp_path: Path, text: str) -> None:
    crash(tmp_path, {"d1": 1})
    (torn,) = files(tmp_path)
    torn.write_text(text)
    for foreign in ("notes.txt", ".DS_Store", "x.2.json", f"{'0' * 32}.json"):
        (torn.parent / foreign).write_text(text)
        (tmp_path / foreign).write_text(text)
    (torn.parent / "folder.json").mkdir()
    found = of(tmp_path, "d1")
    assert found.limit == 1, "a crash all the same"
    assert not found.alone, "of which unit is not known"


def test_storage_that_refuses_markers_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    async def attempt() -> str:
        own = markers(tmp_path / "file" / "launch")
        async with own.attempt("d1", 1) as marker, marker.unit("gist/1"):
            return "done"

    assert asyncio.run(attempt()) == "done"


@in_a_loop
async def test_two_crashes_alone_give_up_the_unit_and_no_other(tmp_path: Path) -> None:
    await die(tmp_path, "d1", "gist/1")
    assert not markers(tmp_path).crashes("d1").give_up("gist/1")
    await die(tmp_path, "d1", "gist/1")
    await die(tmp_path, "d1", "look_up/2")
    found = markers(tmp_path).crashes("d1")
    assert [found.give_up(unit) for unit in ("gist/1", "look_up/2", "answer/3")] == [
        True, False, False,
    ]  # fmt: skip


@in_a_loop
async def test_units_that_are_cut_off_by_a_crash_are_not_blamed(tmp_path: Path) -> None:
    """The next unit has its turn while the news of the death still travels."""
    with pytest.raises(EngineError):
        async with markers(tmp_path).attempt("d1", 1) as attempt:
            with pytest.raises(EngineError):
                async with attempt.unit("gist/1"):
                    raise EngineError("dead")
            async with attempt.unit("look_up/2"):
                pass
            raise EngineError("dead")
    assert markers(tmp_path).crashes("d1").alone == {"gist/1": 1}


@in_a_loop
async def test_two_crashes_between_units_give_up_all_of_them(tmp_path: Path) -> None:
    for _ in range(2):
        await die(tmp_path, "d1", None)
    assert markers(tmp_path).crashes("d1").give_up("gist/1")


def test_a_launch_knows_nothing_of_another(tmp_path: Path) -> None:
    crash(tmp_path / "monday", {"d1": 1})
    assert of(tmp_path / "tuesday", "d1").limit is None


async def start(folder: Path, lost: frozenset[str] = frozenset()) -> None:
    async with InFlightMarkers(folder, Placement("w1", "m2", lambda name: name in lost)).start():
        pass


async def left_starting(folder: Path, worker: str = "w1") -> None:
    """A start during which the process ends."""
    before = set(files(folder))
    with pytest.raises(StartError):
        async with InFlightMarkers(folder, Placement(worker, "m1")).start():
            (file,) = set(files(folder)) - before
            left = file.read_bytes()
            raise StartError("dead")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(left)


@in_a_loop
async def test_an_engine_is_started_three_times_at_most(tmp_path: Path) -> None:
    """A start that only fails is no crash; two processes that end in it are enough."""
    for _ in range(3):
        with pytest.raises(StartError, match="no memory"):
            async with markers(tmp_path).start():
                raise StartError("no memory")
    for _ in range(2):
        await left_starting(tmp_path)
    with pytest.raises(StartError, match="died 2 times while it started"):
        await start(tmp_path)
    await start(tmp_path, lost=frozenset({"m1"}))


@in_a_loop
async def test_a_start_that_succeeds_ends_the_count(tmp_path: Path) -> None:
    for _ in range(3):
        await left_starting(tmp_path)
        await start(tmp_path)
    assert not list(tmp_path.iterdir())


@in_a_loop
async def test_workers_that_start_at_the_same_time_are_no_crashes(tmp_path: Path) -> None:
    for number in range(8):
        await left_starting(tmp_path, f"w{number}")
    async with markers(tmp_path, "w8").start():
        pass
    assert len(files(tmp_path)) == 8


@pytest.mark.parametrize("num_others", [3, 3_000])
def test_an_item_that_never_crashed_costs_the_same_among_thousands(
    tmp_path: Path, num_others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own folder is listed, which holds nothing."""
    process = "f" * 32
    for number in range(num_others):
        folder = tmp_path / f"{number:016x}"
        folder.mkdir()
        (folder / f"{process}.1000000000.json").write_text("{}")
    listed: list[tuple[UPath, int]] = []

    def counted(path: UPath, pattern: str = "*") -> list[UPath]:
        found = list_paths(path, pattern)
        listed.append((path, len(found)))
        return found

    monkeypatch.setattr("pipeline.worker.in_flight.list_paths", counted)
    assert of(tmp_path, "d1").limit is None
    assert [num for _, num in listed] == [0]
    monkeypatch.setattr("pipeline.worker.in_flight.sha", lambda *_: f"{1:016x}")
    assert of(tmp_path, "d1").limit == num_others // 2, "all of them, once one has crashed"
