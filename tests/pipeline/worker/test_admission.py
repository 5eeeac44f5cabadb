"""Which documents share a worker after crashes, and how many crashes a poisonous one costs."""

import asyncio
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pipeline.core.errors import EngineError
from pipeline.work.units import Unit
from pipeline.worker.admission import Admission
from pipeline.worker.in_flight import InFlightMarker, InFlightMarkers, Placement
from tests.support.runs.small_run import RULES, SmallRun
from tests.support.texts.small_corpus import document, question, write

NUM_DOCUMENTS = 100


class Simulation:
    """Worker processes that execute documents of which some kill them."""

    def __init__(self, folder: Path, poison: set[str]) -> None:
        self._folder, self._poison = folder, poison
        self.done, self.given_up = set[str](), set[str]()
        self._inside, self._on_the_way = dict[str, InFlightMarker](), 0

    def survives(self, documents: list[str]) -> bool:
        """Whether a process that executes the documents at the same time lives to the end."""
        self._inside, self._on_the_way = {}, len(documents)
        try:
            asyncio.run(self._all(documents))
        except EngineError:
            return False
        return True

    async def _all(self, documents: list[str]) -> None:
        markers, admission = InFlightMarkers(self._folder, Placement("w1")), Admission()
        await asyncio.gather(*(self._one(name, markers, admission) for name in documents))

    async def _one(self, name: str, markers: InFlightMarkers, admission: Admission) -> None:
        crashes = markers.crashes(name)
        self._on_the_way -= 1
        async with admission.admitted(crashes.limit):
            if crashes.give_up("unit"):
                self.given_up.add(name)
                return
            self._on_the_way += 1
            async with markers.attempt(name, crashes.limit) as marker:
                await marker.write("unit")
                self._on_the_way -= 1
                self._inside[name] = marker
                await self._execute(name)
                del self._inside[name]

    async def _execute(self, name: str) -> None:
        """A bad moment to die: when nearly all are in flight that may be."""
        while self._on_the_way:
            await asyncio.sleep(0.001)
        if name in self._poison:
            for marker in self._inside.values():
                marker.is_left = True
            raise EngineError("dead")
        await asyncio.sleep(0.02)
        self.done.add(name)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("poison", [{"d3"}, {"d3", "d70"}])
def test_a_poisonous_document_costs_few_crashes(tmp_path: Path, poison: set[str]) -> None:
    documents = [f"d{number}" for number in range(NUM_DOCUMENTS)]
    simulation, crashes = Simulation(tmp_path, poison), 0
    while not simulation.survives([d for d in documents if d not in simulation.done]):
        crashes += 1
    assert simulation.done == set(documents) - poison
    assert simulation.given_up == poison
    assert crashes <= 8 * len(poison)  # floor(log2(100)) until it is alone, and two alone


def inside_of(limits: list[int | None]) -> list[list[int]]:
    """The documents in flight at once, by index, until all have been."""

    async def execute() -> list[list[int]]:
        admission, inside, seen = Admission(), list[int](), list[list[int]]()

        async def one(index: int) -> None:
            async with admission.admitted(limits[index]):
                inside.append(index)
                for _ in range(20):
                    await asyncio.sleep(0)
                seen.append(sorted(inside))
                inside.remove(index)

        await asyncio.gather(*(one(index) for index in range(len(limits))))
        return seen

    return asyncio.run(execute())


def test_documents_that_saw_no_crash_do_not_wait() -> None:
    assert inside_of([None] * 5)[0] == [0, 1, 2, 3, 4]


def test_others_run_beside_suspects() -> None:
    first, *_ = inside_of([2, 2, 2, 2, None, None, 4])
    assert first == [0, 1, 4, 5, 6]


def test_a_suspect_alone_comes_last_and_has_nothing_beside_it() -> None:
    *_, before, last = inside_of([None, 1, None, 2, 1])
    assert {tuple(before), tuple(last)} == {(1,), (4,)}


def test_a_document_that_is_cancelled_gives_its_place_back() -> None:
    async def execute() -> None:
        admission = Admission()
        async with admission.admitted(None):
            waiting = [asyncio.create_task(_enter(admission)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with admission.admitted(1):
            pass

    asyncio.run(execute())


async def _enter(admission: Admission) -> None:
    async with admission.admitted(1):
        await asyncio.sleep(0)


NUM_SMALL, POISON = 20, 13


def small_run(folder: Path) -> SmallRun:
    """Documents of a question each, one of which kills the engine that makes gists of it."""
    die = {"prompt": "gist", "match": f"mill{POISON} ", "die": True}
    small, numbers = SmallRun(folder, [die, *RULES]), range(1, NUM_SMALL + 1)
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return small


def process(folder: Path, units: Mapping[str, Sequence[Unit]]) -> None:
    """A worker's process on all units; like the actor it ends when its engine is dead."""
    worker = small_run(folder).worker()

    async def one(document_id: str) -> None:
        try:
            await worker.work(document_id, units[document_id])
        except EngineError:
            os._exit(1)

    async def work() -> None:
        await asyncio.gather(*(one(name) for name in units))

    asyncio.run(work())


@pytest.mark.slow
@pytest.mark.sampled
def test_a_document_that_kills_its_worker_fails_and_no_other(tmp_path: Path) -> None:
    """With real processes, markers and shards."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.pipeline.worker.test_admission"])
    small, codes = small_run(tmp_path), list[int | None]()
    units = small.units()  # as the driver sends them, to each process the same
    while not codes or codes[-1]:
        worker = context.Process(target=process, args=(tmp_path, units))
        worker.start()
        worker.join()
        codes.append(worker.exitcode)
        assert len(codes) <= 7, "four crashes until it is alone, two alone, and the rest"
    for n in range(1, NUM_SMALL + 1):
        problems = {row.problem for row in small.rows("gists", f"d{n}")}
        assert problems == {"unit_failed" if n == POISON else None}
