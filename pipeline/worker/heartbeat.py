"""The progress of a worker: of its documents in flight, unit by unit; its heartbeat file, for
`status` and the time left; and the signal that a run is ending, at which it starts no more units.

Advisory: committed shards are the only record of progress.
"""

import asyncio
import time
from asyncio import to_thread
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any

from pipeline.core.calls import UnitProgress, UsageCounters
from pipeline.files.processes import process_name
from pipeline.files.storage import (
    Advisory,
    AnyPath,
    as_path,
    exists,
    ignore_refusals,
    write,
    write_json,
)
from pipeline.work.executions import weight
from pipeline.work.steps import Step
from pipeline.work.units import Unit

SECONDS_BETWEEN_BEATS = 10.0
_SECONDS_BETWEEN_LOOKS = 2.0  # at the signal
_ENDINGS = chain([""], (f"-{number}" for number in count(2)))  # of this process's workers


@dataclass
class _Pending:
    """A pending unit of a document. `table`: the one that it writes."""

    unit: Unit
    table: str
    asks: bool
    progress: UnitProgress = field(default_factory=UnitProgress)


@dataclass
class DocumentProgress:
    """The progress of one document's pending units. `num_words`: of its text, 0 until it is
    loaded."""

    document_id: str
    num_words: int = 0
    since: float = field(default_factory=time.monotonic)
    _pending: dict[tuple[str, str], _Pending] = field(default_factory=dict)

    def plan(self, units: Iterable[Unit], steps: Mapping[str, Step]) -> None:
        """Set the units; those that are done do not count."""
        for unit in units:
            if not unit.is_done:
                step = steps[unit.step_id]
                own = _Pending(unit, step.table, bool(step.prompts))
                self._pending[unit.step_id, unit.unit] = own

    def started(self, unit: Unit, progress: UnitProgress) -> None:
        """Follow the progress of a unit."""
        self._pending[unit.step_id, unit.unit].progress = progress

    def committed(self, unit: Unit) -> None:
        self._pending[unit.step_id, unit.unit].progress.is_committed = True

    def state(self) -> dict[str, Any]:
        """As JSON: the words of the work on it, the share that is done, the mean of the units' by
        weight, and the progress of the first incomplete table."""
        done = whole = 0.0
        for one in self._pending.values():
            own = weight(one.unit, self.num_words, one.asks)
            done, whole = done + own * one.progress.share, whole + own
        share = round(done / whole, 6) if whole else 0.0
        return {
            "document_id": self.document_id, "words": whole, "share": share, **self._rows(),
        }  # fmt: skip

    def _rows(self) -> dict[str, Any]:
        """The progress of all units of one table: the first that was started and is not
        complete."""
        begun = (o for o in self._pending.values() if o.progress.about and o.progress.share < 1)
        table = next((one.table for one in begun), None)
        told = [o.progress for o in self._pending.values() if o.table == table and o.progress.about]
        done, about = sum(one.done for one in told), sum(one.about or 0 for one in told)
        return {"table": table, "done": done, "about": about}


class Heartbeat:
    """Rewrites <folder>/<host>-<pid>.json every 10 seconds from the worker's first activity; with
    cluster=inline a process has several workers, one after the other: <host>-<pid>-2.json ...

    `launch`: the id of the command that the worker belongs to; `usage`: the worker's counters. A
    heartbeat that storage refuses is skipped; the next one reports for how long there was none.
    """

    def __init__(self, folder: AnyPath, launch: str, usage: UsageCounters) -> None:
        self.name = process_name() + next(_ENDINGS)
        self._launch = launch
        self._usage = usage
        self._file = as_path(folder) / f"{self.name}.json"
        self._in_flight: list[DocumentProgress] = []
        self._is_starting = False
        self.waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
        self.findings: Mapping[str, str] = {}  # of the first replies; see ReplyWatch
        self._task: asyncio.Task[None] | None = None
        self._at_once = asyncio.Event()
        self._advisory = Advisory()
        # Of its own: the other threads may all wait for storage that does not answer.
        self._thread = ThreadPoolExecutor(1, "heartbeat")

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Report the engine as starting inside the context."""
        self._is_starting = True
        self._keep_beating()
        try:
            yield
        finally:
            self._is_starting = False
            self._at_once.set()

    @contextmanager
    def document(self, document_id: str) -> Iterator[DocumentProgress]:
        """Report the document, or a chunk of its questions, as in flight inside the context."""
        progress = DocumentProgress(document_id)
        self._in_flight.append(progress)
        self._keep_beating()
        try:
            yield progress
        finally:
            self._in_flight = [one for one in self._in_flight if one is not progress]

    def close(self) -> None:
        """Beat no more. For a worker whose process goes on."""
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False)

    def _keep_beating(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._at_once.clear()
            await loop.run_in_executor(self._thread, self._write, self._state())
            with suppress(TimeoutError):
                # Not wait_for: before 3.12 it loses a cancellation that comes with the event.
                async with asyncio.timeout(SECONDS_BETWEEN_BEATS):
                    await self._at_once.wait()

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
            "inside": [one.state() for one in self._in_flight],
            "refused": self._advisory.state(),
        }

    def _write(self, state: dict[str, Any]) -> None:
        with self._advisory.attempt():
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
            await to_thread(self._look)
        return self._is_sent

    def _look(self) -> None:
        with ignore_refusals():  # checked again in two seconds
            self._is_sent = exists(self._file)
