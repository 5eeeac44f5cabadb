"""The worker: one engine, and its documents in flight. Independent of Ray and of what stages do.

Documents do not wait for each other; pipeline/worker/executor.py executes the stages of one.
"""

import asyncio
import os
import socket
import time
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import ENOENT
from functools import partial
from itertools import count

from pipeline.asking.reader import Reader
from pipeline.asking.reply_log import SharedReplies
from pipeline.asking.slots import Capacity
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import Closable
from pipeline.core.errors import AccountingError, CommandError, StartError, StorageError, UsageError
from pipeline.files.place import AnyPath, as_path, exists, never_make
from pipeline.files.storage_retries import refusal_error
from pipeline.store import Shards
from pipeline.work.steps import Step
from pipeline.work.units import Unit
from pipeline.worker.admission import Admission
from pipeline.worker.executor import DocumentExecutor, Summary
from pipeline.worker.heartbeat import Heartbeat, StopSignal
from pipeline.worker.in_flight import Crashes, InFlightMarkers, Placement

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
        self._markers = InFlightMarkers(run / "in_flight" / launch, placement)
        self._steps = {step.id: step for step in steps}
        self._start, self._start_timeout = start, start_timeout
        self._reader: asyncio.Task[Reader] | None = None
        self._shared: dict[str, SharedReplies] = {}
        self._ranks = count()
        self._admission = Admission()
        self._text = Capacity(_TEXT_IN_FLIGHT)
        self._has_seen = False  # the warehouse
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

        A document that was in flight when a worker crashed is executed among half as many such
        documents, after further crashes alone, one unit at a time; a unit that crashes two workers
        this way becomes `unit_failed` rows. Raises AccountingError if workers crash before any unit
        is executed, UsageError if the warehouse is not visible here, StartError or EngineError.
        """
        began = time.perf_counter()
        summary = Summary(document_id, self._heartbeat.name)
        if not self._has_seen:  # else seen again below
            await to_thread(self._refuse_unshared)
        if await self._stop.is_sent():
            return summary
        reader = await self._started() if self._start else None
        item = "/".join([document_id, *sorted(unit.unit for unit in units if not unit.is_done)])
        rank = next(self._ranks)
        crashes, text = await to_thread(self._before, document_id, item, units)
        async with (
            self._admission.admitted(crashes.limit),
            self._text.held(text),
            self._markers.attempt(item, crashes.limit) as marker,
        ):
            with self._heartbeat.document(document_id) as progress:
                executor = self._executor(
                    reader=reader,
                    units=units,
                    summary=summary,
                    rank=rank,
                    marker=marker,
                    crashes=crashes,
                    progress=progress,
                )
                await _finish(executor)
        summary.seconds = time.perf_counter() - began
        summary.findings = dict(self._heartbeat.findings)
        return summary

    async def close(self) -> None:
        """End the engine and the heartbeat. For a worker whose process goes on."""
        self._heartbeat.close()
        if self._reader is None:
            return
        with suppress(CommandError):  # it did not start
            engine = (await self._reader).engine
            if isinstance(engine, Closable):
                await engine.close()

    def _before(self, document_id: str, item: str, units: Sequence[Unit]) -> tuple[Crashes, int]:
        """The crashes of earlier attempts at a document, and the size of its text in bytes. Raises
        as `work` does."""
        self._refuse_unshared()
        crashes = self._markers.crashes(item)
        if crashes.is_beyond_units():
            raise AccountingError(
                f"{document_id}: workers crash while they load its rows (too little memory?); give "
                "them more or leave the document out, then run the same command to resume"
            )
        return crashes, self._text_bytes(units)

    def _refuse_unshared(self) -> None:
        """Raise UsageError if this machine does not see what the driver has committed, StorageError
        if it no longer does."""
        warehouse = self._shards.warehouse
        if any(exists(warehouse / folder) for folder in ("tables", "compacted")):
            never_make(warehouse)
            self._has_seen = True
        elif self._has_seen:
            raise refusal_error(warehouse, FileNotFoundError(ENOENT, os.strerror(ENOENT)))
        else:
            raise UsageError(
                f"warehouse={warehouse}: not visible from {socket.gethostname()}; put it where "
                "all machines of the cluster can reach it, such as s3://BUCKET/FOLDER"
            )

    def _text_bytes(self, units: Sequence[Unit]) -> int:
        """The size of the document's rows in memory, in bytes: mostly its text."""
        loaded = (unit for unit in units if self._steps[unit.step_id].table == "documents")
        size = partial(self._shards.num_bytes, "documents")
        return sum(size(unit.step_id, unit.unit, unit.attempt) for unit in loaded)

    def _shared_replies(self, step_id: str) -> SharedReplies:
        made = SharedReplies(self._shards.warehouse / "shared" / step_id)
        return self._shared.setdefault(step_id, made)  # at once: called in threads

    async def _started(self) -> Reader:
        """The reader, started once for all documents that wait for it."""
        if self._reader is None:
            self._reader = asyncio.create_task(self._start_reader())
        return await asyncio.shield(self._reader)

    async def _start_reader(self) -> Reader:
        assert self._start is not None
        with self._heartbeat.starting():
            async with self._markers.start():
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


async def _finish(executor: DocumentExecutor) -> None:
    """Finish a document. After a StorageError no other request is sent."""
    try:
        await executor.finish()
    except StorageError as error:
        if executor.reader:
            executor.reader.slots.refuse(error)
        raise
