"""In-flight markers: one file per attempt at a document, deleted when the attempt ends.

<run>/in_flight/<launch>/<item>/<process>.<limit>.json. A marker left behind means that its worker
crashed, and the names of those left by one process say which documents were in flight together.
Items have folders of their own, as most never crash: there is nothing to list for them then.
Every launch of the driver has its own folder, so that a killed driver is not counted as a crash;
nor is a machine that the cluster has lost.
"""

import re
import socket
import uuid
from asyncio import to_thread
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from upath import UPath

from pipeline.core.errors import EngineError, StartError
from pipeline.core.settings import sha
from pipeline.files.place import (
    AnyPath,
    as_path,
    delete,
    delete_if_empty,
    list_paths,
    read_object,
    write_json,
)
from pipeline.files.storage_retries import ignore_refusals

_MAX_CRASHES_ALONE = 2  # with a single document in flight, before its unit is given up
_MAX_CRASHES_STARTING = 2
_NAME = re.compile(r"(?P<process>[0-9a-f]{32})\.(?P<limit>\d+)\.json")
_NO_LIMIT = 10**9


def _never(machine: str) -> bool:
    return False


@dataclass(frozen=True)
class Placement:
    """The identity of a worker process, and its machine.

    `worker` stays the same when Ray restarts the process. `is_lost` returns true for the name of a
    machine that the cluster has lost.
    """

    worker: str
    machine: str = socket.gethostname()
    is_lost: Callable[[str], bool] = _never


@dataclass(frozen=True)
class Crashes:
    """Crashes of workers that had a document in flight.

    `limit`: how many documents that are at least as suspect may be in flight with it at its next
    attempt, itself included; None if no worker crashed. It halves with every crash, so that one
    document among n is alone after log2(n) crashes. `alone` counts the crashes of workers with
    nothing else in flight, by unit; "" stands for a crash between two units.
    """

    limit: int | None
    alone: Counter[str]

    def give_up(self, unit: str) -> bool:
        """True if workers crashed too often on the unit, or between units, with this document
        alone."""
        return max(self.alone[unit], self.alone[""]) >= _MAX_CRASHES_ALONE

    def is_beyond_units(self) -> bool:
        """True if a worker crashed again although every unit was given up: while it loaded the
        document's rows."""
        return self.alone[""] > _MAX_CRASHES_ALONE


class InFlightMarkers:
    """The markers that one worker process writes in a launch of a run, and those left by others.

    Markers are advisory: if storage refuses one, a crash is not counted.
    """

    def __init__(self, folder: AnyPath, placement: Placement) -> None:
        self._folder = as_path(folder)
        self._placement = placement
        self._process = uuid.uuid4().hex
        self._starts = self._folder / "start"

    def crashes(self, item: str) -> Crashes:
        """The crashes of earlier attempts at an item. It blocks."""
        with ignore_refusals():
            return self._crashes(_hash(item))
        return Crashes(None, Counter())

    def _crashes(self, item: str) -> Crashes:
        of_others = [
            (file, named)
            for file, named in _named(list_paths(self._folder / item))
            if named["process"] != self._process
        ]
        limits, alone = [], Counter[str]()
        for file, named in of_others:
            marker = read_object(file)
            if self._placement.is_lost(str(marker.get("machine"))):
                continue
            limits.append(max(1, self._num_with(named) // 2))
            if named["limit"] == "1" and isinstance(marker.get("unit"), str):
                alone[marker["unit"]] += 1
        return Crashes(min(limits, default=None), alone)

    def _num_with(self, crashed: re.Match[str]) -> int:
        """The documents in flight at the crash that were as suspect as the marker's, or more."""
        left = _named(list_paths(self._folder, f"*/{crashed['process']}.*.json"))
        return sum(int(named["limit"]) <= int(crashed["limit"]) for _, named in left)

    @asynccontextmanager
    async def attempt(self, item: str, limit: int | None) -> AsyncIterator["InFlightMarker"]:
        """Keep a marker of the item inside the context. It stays if the process dies or after an
        EngineError, which ends the process; otherwise it is deleted. `limit`: as in Crashes."""
        file = self._folder / _hash(item) / f"{self._process}.{limit or _NO_LIMIT}.json"
        marker = InFlightMarker(file, item, self._placement.machine, limit == 1)
        await marker.write("")
        try:
            yield marker
        except EngineError:
            marker.is_left = True
            raise
        finally:
            if not marker.is_left:
                await to_thread(_delete, marker.file)

    @asynccontextmanager
    async def start(self) -> AsyncIterator[None]:
        """Keep a marker while the worker's engine starts. Raises StartError if its processes
        crashed too often while they started."""
        left = await to_thread(self._starting)
        if len(left) >= _MAX_CRASHES_STARTING:
            raise StartError(
                f"an engine's process died {_MAX_CRASHES_STARTING} times while it started (too "
                "little memory for the model, or for its cache?); lower what it needs, then run "
                "the same command to resume"
            )
        file = self._starts / f"{self._placement.worker}.{uuid.uuid4().hex}.json"
        with ignore_refusals():
            await to_thread(write_json, file, {"machine": self._placement.machine})
        try:
            yield
            for crashed in left:  # before a start that succeeded: the next crash is the first again
                await to_thread(_delete, crashed)
        finally:
            await to_thread(_delete, file)

    def _starting(self) -> list[UPath]:
        """The markers of starts of the worker in which its process crashed."""
        with ignore_refusals():
            files = list_paths(self._starts, f"{self._placement.worker}.*.json")
            machines = {file: str(read_object(file).get("machine")) for file in files}
            return [file for file, name in machines.items() if not self._placement.is_lost(name)]
        return []


@dataclass
class InFlightMarker:
    """The marker of one attempt at an item."""

    file: UPath
    item: str
    machine: str
    alone: bool  # whether the worker has nothing else in flight
    is_left: bool = False

    async def write(self, unit: str) -> None:
        """Record the unit being executed; "" between units."""
        marker = {"item": self.item, "machine": self.machine, "unit": unit}
        with ignore_refusals():
            await to_thread(write_json, self.file, marker)

    @asynccontextmanager
    async def unit(self, unit: str) -> AsyncIterator[None]:
        """Record `unit` inside the context, where the item is alone: crashes are counted for it."""
        if not self.alone or self.is_left:
            yield
            return
        await self.write(unit)
        try:
            yield
        except EngineError:
            self.is_left = True
            raise
        await self.write("")


def _named(files: Iterable[UPath]) -> Iterator[tuple[UPath, re.Match[str]]]:
    """The markers of attempts among these files, and what their names state."""
    return ((file, named) for file in files if (named := _NAME.fullmatch(file.name)))


def _hash(item: str) -> str:
    return sha(item, 16)


def _delete(file: UPath) -> None:
    with ignore_refusals():
        delete(file)
        delete_if_empty(file.parent)
