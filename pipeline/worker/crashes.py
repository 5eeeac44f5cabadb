"""Crashes of workers, recognized by a marker file for each document in flight.

<run>/in_flight/<launch>/<item>/<process>.json is deleted when an attempt at the item ends. A marker
that is left behind means that its process crashed. A killed driver does not count as a crash, as
every launch of the driver has its own folder; nor does a machine that the cluster has lost.
"""

import asyncio
import socket
import uuid
from asyncio import to_thread
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from upath import UPath

from pipeline.core.errors import EngineError, StartError
from pipeline.core.settings import sha
from pipeline.files.storage import (
    AnyPath,
    as_path,
    delete,
    delete_if_empty,
    ignore_refusals,
    list_paths,
    read_object,
    write_json,
)

GIVEN_UP = "a worker crashed twice while it executed only this unit"
_MOST_ALONE = 2  # crashes on a document alone in flight, before its unit is given up
_MOST_STARTING = 2
_BITS_A_CRASH = 2  # each crash divides the number of documents in flight together by four


@dataclass(frozen=True)
class Placement:
    """The identity of a worker process, and its machine."""

    worker: str  # the same when Ray restarts the process
    machine: str = socket.gethostname()
    is_lost: Callable[[str], bool] = lambda machine: False  # the cluster has lost that machine


@dataclass(frozen=True)
class Crashes:
    """Crashes of workers that had an item in flight."""

    # How many of the items that were in flight at a crash may be in flight together at the next
    # attempt: a quarter of them after the first crash, then a sixteenth, in the end one; None
    # without a crash. One at a time from the first crash on would take hours on an idle engine,
    # as all items but one were only bystanders.
    together: int | None = None
    # Crashes with nothing else in flight, by unit; "" stands for a crash between two units.
    alone: Counter[str] = field(default_factory=Counter)

    @property
    def is_alone(self) -> bool:
        return self.together == 1

    def give_up(self, unit: str = "") -> bool:
        """True if workers crashed too often on the unit, or between units, with the item alone."""
        return self.alone[unit] >= _MOST_ALONE


@dataclass
class Attempt:
    """One attempt at an item: the earlier crashes, and its marker; `file` None: no marker."""

    crashes: Crashes = field(default_factory=Crashes)
    file: UPath | None = None
    machine: str = ""
    is_left: bool = False  # the engine is dead: the marker stays
    _one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def write(self, unit: str | None) -> None:
        """Record the unit that is executed alone; "" between units, None if others are in
        flight."""
        # The marker of a unit that killed the engine stays as it is.
        if self.file is not None and not self.is_left:
            with ignore_refusals():
                await to_thread(write_json, self.file, {"machine": self.machine, "unit": unit})

    @asynccontextmanager
    async def unit(self, unit: str) -> AsyncIterator[None]:
        """If the item is alone, execute one unit at a time and record it, so that a crash counts
        for it."""
        if not self.crashes.is_alone:
            yield
            return
        async with self._one_by_one:
            await self.write(unit)
            try:
                yield
            except EngineError:
                self.is_left = True
                raise
            await self.write("")


class InFlight:
    """The markers that one worker process writes in a launch of a run, and the markers that crashed
    processes have left there. If storage refuses a marker, a crash is not counted."""

    def __init__(self, folder: AnyPath, placement: Placement) -> None:
        self._folder = as_path(folder)
        self._placement = placement
        self._process = uuid.uuid4().hex

    def crashes(self, item: str) -> Crashes:
        """The crashes at earlier attempts at an item. It blocks."""
        if left := self._left(item):
            with ignore_refusals():
                most = max(len(list_paths(self._folder, f"*/{file.name}")) for file in left)
                alone = Counter(unit for unit in left.values() if isinstance(unit, str))
                return Crashes(max(1, most >> _BITS_A_CRASH * len(left)), alone)
        return Crashes()

    def _left(self, item: str) -> dict[UPath, object]:
        """The markers of the item that crashed processes have left, with their units."""
        left: dict[UPath, object] = {}
        with ignore_refusals():
            for file in list_paths(self._folder / sha(item, 16), "*.json"):
                marker = read_object(file)
                is_lost = self._placement.is_lost(str(marker.get("machine")))
                if file.stem != self._process and not is_lost:
                    left[file] = marker.get("unit")
        return left

    @asynccontextmanager
    async def attempt(self, item: str, crashes: Crashes) -> AsyncIterator[Attempt]:
        """Keep a marker of the item inside the context. It stays if the process dies or after an
        EngineError, which ends the process; otherwise it is deleted."""
        file = self._folder / sha(item, 16) / f"{self._process}.json"
        attempt = Attempt(crashes, file, self._placement.machine)
        await attempt.write("" if crashes.is_alone else None)
        try:
            yield attempt
        except EngineError as error:
            attempt.is_left |= not isinstance(error, StartError)
            raise
        finally:
            if not attempt.is_left:
                await to_thread(_delete, file)

    @asynccontextmanager
    async def start(self) -> AsyncIterator[None]:
        """Keep a marker while the worker's engine starts. Raises StartError if its processes
        crashed too often while they started."""
        item = f"start {self._placement.worker}"
        left = await to_thread(self._left, item)
        if len(left) >= _MOST_STARTING:
            raise StartError(
                f"an engine's process died {_MOST_STARTING} times while it started (too little "
                "memory for the model, or for its cache?); lower what it needs, then run the same "
                "command to resume"
            )
        async with self.attempt(item, Crashes()):
            yield
        for crashed in left:  # this start succeeded: the next crash is the first again
            await to_thread(_delete, crashed)


def _delete(file: UPath) -> None:
    with ignore_refusals():
        delete(file)
        delete_if_empty(file.parent)
