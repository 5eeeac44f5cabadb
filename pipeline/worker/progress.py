"""The progress of a worker's documents in flight; its heartbeat file, for `status` and the time
left; and the signal that a run is ending. Advisory: only committed shards record progress."""

import asyncio
import time
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any

from pipeline.core.calls import UnitProgress, UsageCounters
from pipeline.files.storage import (
    AnyPath,
    as_path,
    exists,
    ignore_refusals,
    process_name,
    write,
    write_json,
)
from pipeline.work.units import Step, Unit, weight

SECONDS_BETWEEN_BEATS = 10.0
_SECONDS_BETWEEN_LOOKS = 2.0  # at the signal
_ENDINGS = chain([""], (f"-{number}" for number in count(2)))  # suffixes for this process's workers


@dataclass
class Summary(UsageCounters):
    """The result of one document in one phase; all that a worker returns to the driver. Only calls
    that were sent are counted."""

    document_id: str
    worker: str = ""
    asked: dict[str, int] = field(default_factory=dict)  # requests to the engine, by step_id
    words: float = 0.0  # the weight of its pending units, as planned
    findings: dict[str, str] = field(default_factory=dict)  # about its engine's server


@dataclass
class DocumentProgress:
    """The progress of one document's pending units."""

    document_id: str
    num_words: int = 0  # of its text, once it is loaded
    since: float = field(default_factory=time.monotonic)
    _pending: dict[tuple[str, str], tuple[Unit, Step, UnitProgress]] = field(default_factory=dict)

    def begun(self, unit: Unit, step: Step, progress: UnitProgress) -> None:
        """Follow a pending unit by this progress from now on."""
        self._pending[unit.step_id, unit.unit] = unit, step, progress

    def committed(self, unit: Unit) -> None:
        self._pending[unit.step_id, unit.unit][-1].is_committed = True

    def state(self) -> dict[str, Any]:
        """The progress as JSON: the document's pending work in words; the share done, as the mean
        over units by weight; and the progress of all units of the first begun table that is not
        complete."""
        done = whole = 0.0
        by_table: dict[str, list[UnitProgress]] = {}
        for unit, step, progress in self._pending.values():
            words = weight(unit, self.num_words, bool(step.prompts))
            done, whole = done + words * progress.share, whole + words
            if progress.about:
                by_table.setdefault(step.table, []).append(progress)
        incomplete = (t for t, units in by_table.items() if any(unit.share < 1 for unit in units))
        table = next(incomplete, None)
        units = by_table[table] if table else []
        return {
            "document_id": self.document_id,
            "words": whole,
            "share": round(done / whole, 6) if whole else 0.0,
            "table": table,
            "done": sum(unit.done for unit in units),
            "about": sum(unit.about or 0 for unit in units),
        }


class Heartbeat:
    """Rewrites <folder>/<host>-<pid>.json every 10 seconds from the worker's first activity; with
    cluster=inline a process has several workers, one after the other: <host>-<pid>-2.json ...
    A heartbeat that storage refuses is skipped."""

    def __init__(self, folder: AnyPath, launch: str, usage: UsageCounters) -> None:
        self.name = process_name() + next(_ENDINGS)
        self._launch, self._usage = launch, usage
        self._file = as_path(folder) / f"{self.name}.json"
        self._in_flight: list[DocumentProgress] = []
        self._is_starting = False
        self.waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
        self.findings: Mapping[str, str] = {}  # about the engine's server
        self._task: asyncio.Task[None] | None = None
        # Its own thread: the other threads may all wait for storage that does not answer.
        self._thread = ThreadPoolExecutor(1, "heartbeat")

    @contextmanager
    def starting(self) -> Iterator[None]:
        self._is_starting = True
        self._task = self._task or asyncio.create_task(self._beat())
        try:
            yield
        finally:
            self._is_starting = False

    @contextmanager
    def document(self, document_id: str) -> Iterator[DocumentProgress]:
        progress = DocumentProgress(document_id)
        self._in_flight.append(progress)
        self._task = self._task or asyncio.create_task(self._beat())
        try:
            yield progress
        finally:
            self._in_flight = [other for other in self._in_flight if other is not progress]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await loop.run_in_executor(self._thread, self._write, self._state())
            await asyncio.sleep(SECONDS_BETWEEN_BEATS)

    def _state(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "worker": self.name,
            "launch": self._launch,
            "is_starting": self._is_starting,
            "waiting_for": self.waiting_for(),
            **asdict(self._usage),
            "documents": {o.document_id: round(now - o.since, 1) for o in self._in_flight},
            "findings": dict(self.findings),
            "inside": [progress.state() for progress in self._in_flight],
        }

    def _write(self, state: dict[str, Any]) -> None:
        with ignore_refusals():
            write_json(self._file, state)


class StopSignal:
    """A file in the run's folder; each launch has its own, so it does not stop the next launch."""

    def __init__(self, run: AnyPath, launch: str) -> None:
        self._file = as_path(run) / "alive" / f"{launch}.stop"
        self._looked = float("-inf")
        self._is_sent = False

    def send(self, why: str) -> None:
        """Signal the workers that the run is ending. Raises StorageError."""
        write(self._file, f"{why}\n".encode())

    async def is_sent(self) -> bool:
        """True if the run is ending; checks the file at most every two seconds."""
        now = time.monotonic()
        if not self._is_sent and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            with ignore_refusals():  # checked again in two seconds
                self._is_sent = await to_thread(exists, self._file)
        return self._is_sent
