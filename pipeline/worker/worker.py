"""The worker: one engine, its documents in flight, and their outcomes as texts that travel between
processes. Independent of Ray and of what stages do.

Documents do not wait for each other; pipeline/worker/executor.py executes the stages of one.
"""

import asyncio
import json
import socket
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from typing import Protocol

from pipeline.asking.reader import Capacity, Reader
from pipeline.asking.replies import SharedReplies
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import Closable
from pipeline.core.errors import (
    AccountingError,
    CommandError,
    OutageError,
    StartError,
    StorageError,
    UsageError,
)
from pipeline.files.storage import AnyPath, as_path, exists, never_made
from pipeline.store import Shards
from pipeline.work.executions import DocumentWork
from pipeline.work.steps import Step
from pipeline.work.units import Unit
from pipeline.worker.crashes import Crashes, InFlight, Placement
from pipeline.worker.executor import DocumentExecutor
from pipeline.worker.heartbeat import Heartbeat, StopSignal, Summary

# Bytes of text of the documents in flight (a larger document is alone). Processing a document takes
# about thirteen times its text in memory.
_TEXT_IN_FLIGHT = 64_000_000

Start = Callable[[], Awaitable[Reader]]


class Worker:
    """Starts one engine (none for scoring) and commits the units it is given.

    `run`: the run's folder in the warehouse. `launch`: the id of the command that executes it now.
    """

    def __init__(
        self,
        run: AnyPath,
        launch: str,
        placement: Placement,
        steps: Sequence[Step],
        start: Start | None,
        start_timeout: float,
    ) -> None:
        run = as_path(run)
        self._shards = Shards(run.parent.parent)
        self.usage = UsageCounters()
        self._heartbeat = Heartbeat(run / "alive", launch, self.usage)
        self._stop = StopSignal(run, launch)
        self._in_flight = InFlight(run / "in_flight" / launch, placement)
        self._steps = {step.id: step for step in steps}
        self._start, self._start_timeout = start, start_timeout
        self._reader: asyncio.Task[Reader] | None = None
        self._shared: dict[str, SharedReplies] = {}
        self._ranks = count()
        self._capacity = Capacity(_TEXT_IN_FLIGHT)
        self._has_seen = False  # the warehouse was found visible
        self._refusal: StorageError | None = None
        self._executor = partial(
            DocumentExecutor,
            shards=self._shards,
            steps=self._steps,
            shared=self._shared_replies,
            usage=self.usage,
            is_ending=self._stop.is_sent,
        )

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary:
        """Commit every pending unit; starts no more units once the run is ending.

        If a worker crashed with the document in flight, it is executed among a quarter as many
        documents, after further crashes alone, one unit at a time; a unit that crashes two workers
        this way becomes `unit_failed` rows. Raises AccountingError if workers crash twice between
        units, UsageError if the warehouse is not visible here, StartError or EngineError.
        """
        if self._refusal:  # the replies could not be kept
            raise self._refusal
        began = time.perf_counter()
        summary = Summary(document_id, self._heartbeat.name)
        if not self._has_seen:
            await to_thread(self._refuse_unshared)
        if await self._stop.is_sent():
            return summary
        reader = await self._started() if self._start else None
        item = "/".join([document_id, *sorted(unit.unit for unit in units if not unit.is_done)])
        rank = next(self._ranks)
        crashes, size = await to_thread(self._before, document_id, item, units)
        async with (
            self._capacity.held(crashes.weight(size, _TEXT_IN_FLIGHT)),
            self._in_flight.attempt(item, crashes) as attempt,
        ):
            with self._heartbeat.document(document_id) as progress:
                executor = self._executor(
                    reader=reader,
                    units=units,
                    summary=summary,
                    rank=rank,
                    attempt=attempt,
                    progress=progress,
                )
                await self._finish(executor)
        summary.seconds = time.perf_counter() - began
        summary.findings = dict(self._heartbeat.findings)
        return summary

    async def _finish(self, executor: DocumentExecutor) -> None:
        """Finish a document. After a StorageError nothing else is begun or sent."""
        try:
            await executor.finish()
        except StorageError as error:
            self._refusal = error
            if executor.reader:
                executor.reader.slots.refusal = error
            raise

    async def close(self) -> None:
        """Close the engine and the heartbeat, if the worker's process goes on."""
        self._heartbeat.close()
        if self._reader is None:
            return
        with suppress(CommandError):  # it did not start
            engine = (await self._reader).engine
            if isinstance(engine, Closable):
                await engine.close()

    def _before(self, document_id: str, item: str, units: Sequence[Unit]) -> tuple[Crashes, int]:
        """The crashes of earlier attempts at a document, and the size of its text in bytes. Raises
        AccountingError as `work` does."""
        crashes = self._in_flight.crashes(item)
        if crashes.give_up():
            raise AccountingError(
                f"{document_id}: workers crash while they load its rows (too little memory?); give "
                "them more or leave the document out, then run the same command to resume"
            )
        return crashes, self._text_bytes(units)

    def _refuse_unshared(self) -> None:
        """Raise UsageError if this machine does not see what the driver has committed."""
        warehouse = self._shards.warehouse
        if not any(exists(warehouse / folder) for folder in ("tables", "compacted")):
            raise UsageError(
                f"warehouse={warehouse}: not visible from {socket.gethostname()}; put it where "
                "all machines of the cluster can reach it, such as s3://BUCKET/FOLDER"
            )
        never_made.add(warehouse)
        self._has_seen = True

    def _text_bytes(self, units: Sequence[Unit]) -> int:
        """The size of the document's rows in memory, in bytes: mostly its text."""
        loaded = (unit for unit in units if self._steps[unit.step_id].table == "documents")
        size = partial(self._shards.num_bytes, "documents")
        return sum(size(unit.step_id, unit.unit, unit.attempt) for unit in loaded)

    def _shared_replies(self, step_id: str) -> SharedReplies:
        made = SharedReplies(self._shards.warehouse / "shared" / step_id)
        return self._shared.setdefault(step_id, made)  # atomic: called in threads

    async def _started(self) -> Reader:
        """The reader, started once for all documents that wait for it."""
        if self._reader is None:
            self._reader = asyncio.create_task(self._start_reader())
        return await asyncio.shield(self._reader)

    async def _start_reader(self) -> Reader:
        assert self._start is not None
        with self._heartbeat.starting():
            async with self._in_flight.start():
                try:
                    reader = await asyncio.wait_for(self._start(), self._start_timeout)
                    self._heartbeat.waiting_for = reader.waiting_for
                    if reader.is_model:
                        self._heartbeat.findings = reader.watch.findings
                    return replace(reader, usage=self.usage, worker=self._heartbeat.name)
                except TimeoutError:
                    raise StartError(
                        f"the engine did not start within {self._start_timeout:g} s; raise "
                        "engine.start_timeout (or rater.start_timeout) if it needs longer"
                    ) from None


# Documents in flight of a worker beyond its request slots, as some are between requests.
DOCUMENTS_OVER_SLOTS = 4


class AnyWorker(Protocol):
    """The interface of `Worker` that executions use."""

    usage: UsageCounters

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary: ...

    async def close(self) -> None: ...


MakeWorker = Callable[[Placement], AnyWorker]
"""Makes a worker, in the process in which it will work."""
Done = Callable[[Summary | CommandError], None]
"""Called with the summary of each document, or with an error that ends the run later."""

# Ray preserves only the text of an exception, so errors return as rows; the driver raises them.
_ERRORS: dict[str, type[CommandError]] = {
    error.__name__: error
    for error in (AccountingError, OutageError, StartError, StorageError, UsageError)
}


async def outcome(worker: AnyWorker, document: DocumentWork) -> dict[str, str]:
    """Work on a document. Returns `error`, the name of an error class or "", and `payload`, the
    error's message or the Summary as JSON. Raises EngineError: the worker must be made anew, and
    the document executed again."""
    try:
        summary = await worker.work(document.document_id, document.units)
    except tuple(_ERRORS.values()) as error:
        return {"error": type(error).__name__, "payload": str(error)}
    return {"error": "", "payload": json.dumps({**asdict(summary), "words": document.words})}


def take(row: Mapping[str, str], done: Done) -> None:
    """Handle an outcome in the driver. Raises the errors that end a run at once."""
    if not row["error"]:
        done(Summary(**json.loads(row["payload"])))
        return
    error = _ERRORS[row["error"]](row["payload"])
    if not isinstance(error, (AccountingError, StorageError)):
        raise error
    done(error)
