"""The worker: one engine, its documents in flight, and their outcomes; an execution by one worker
in this process. Independent of Ray and of what stages do."""

import asyncio
import signal
import socket
import threading
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import chain, count

from pipeline.asking.ask import Capacity, Reader
from pipeline.asking.replies import SharedReplies
from pipeline.core.calls import UsageCounters
from pipeline.core.errors import (
    AccountingError,
    CommandError,
    EngineError,
    OutageError,
    StartError,
    StorageError,
    UsageError,
)
from pipeline.files.storage import AnyPath, as_path, exists, ignore_refusals, never_made
from pipeline.store import Shards
from pipeline.work.units import DocumentWork, Step, Unit, Work
from pipeline.worker.crashes import InFlight, Placement
from pipeline.worker.executor import DocumentExecutor
from pipeline.worker.progress import Heartbeat, StopSignal, Summary

# Words of the documents in flight, some 64 MB of text (a larger document is alone). Processing a
# document takes about thirteen times its text in memory.
_WORDS_IN_FLIGHT = 10_000_000
# Documents in flight of a worker beyond its request slots, as some are between requests.
DOCUMENTS_OVER_SLOTS = 4

Start = Callable[[], Awaitable[Reader]]


class Worker:
    """Starts one engine (none for scoring) and commits the units it is given. `run`: the run's
    folder; `launch`: the id of the command that executes it now."""

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
        self._usage = UsageCounters()
        self._heartbeat = Heartbeat(run / "alive", launch, self._usage)
        self._stop = StopSignal(run, launch)
        self._in_flight = InFlight(run / "in_flight" / launch, placement)
        self._steps = {step.id: step for step in steps}
        self._start, self._start_timeout = start, start_timeout
        self._reader: asyncio.Task[Reader] | None = None
        shared = self._shards.warehouse / "shared"
        self._shared = cache(lambda step_id: SharedReplies(shared / step_id))
        self._ranks = count()
        self._capacity = Capacity(_WORDS_IN_FLIGHT)
        self._has_seen = False  # the warehouse was found visible
        self._refusal: StorageError | None = None

    async def work(self, document_id: str, units: Sequence[Unit], num_words: int) -> Summary:
        """Commit every pending unit of a document of so many words; starts no more units once the
        run is ending. Raises AccountingError if workers crash twice between the document's units,
        UsageError if the warehouse is not visible here, StartError or EngineError. After a
        StorageError nothing else is begun or sent."""
        if self._refusal:  # the replies could not be kept
            raise self._refusal
        summary = Summary(document_id, self._heartbeat.name)
        if not self._has_seen:
            await to_thread(self._refuse_unshared)
        if await self._stop.is_sent():
            return summary
        reader = None
        if self._start:  # the engine is started once for all documents that wait for it
            self._reader = self._reader or asyncio.create_task(self._start_reader(self._start))
            reader = await asyncio.shield(self._reader)
        item = "/".join([document_id, *sorted(unit.unit for unit in units if not unit.is_done)])
        rank = next(self._ranks)
        crashes = await to_thread(self._in_flight.crashes, item)
        if crashes.give_up():
            raise AccountingError(
                f"{document_id}: workers crash while they load its rows (too little memory?); give "
                "them more or leave the document out, then run the same command to resume"
            )
        if crashes.together:  # suspects take so much of the capacity that only so many fit in
            num_words = max(num_words, _WORDS_IN_FLIGHT // crashes.together)
        try:
            async with (
                self._capacity.held(num_words),
                self._in_flight.attempt(item, crashes) as attempt,
            ):
                with self._heartbeat.document(document_id) as progress:
                    await DocumentExecutor(
                        shards=self._shards,
                        steps=self._steps,
                        reader=reader,
                        units=units,
                        summary=summary,
                        rank=rank,
                        attempt=attempt,
                        shared=self._shared,
                        usage=self._usage,
                        progress=progress,
                        is_ending=self._stop.is_sent,
                    ).finish()
        except StorageError as error:
            self._refusal = error
            if reader:
                reader.slots.refusal = error
            raise
        summary.findings = dict(self._heartbeat.findings)
        return summary

    async def close(self) -> None:
        """Close the engine and the heartbeat, if the worker's process goes on."""
        self._heartbeat.close()
        if self._reader is None:
            return
        with suppress(CommandError, asyncio.CancelledError):  # it did not start
            engine = (await self._reader).engine
            if close := getattr(engine, "close", None):
                await close()

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

    async def _start_reader(self, start: Start) -> Reader:
        with self._heartbeat.starting():
            async with self._in_flight.start():
                try:
                    reader = await asyncio.wait_for(start(), self._start_timeout)
                except TimeoutError:
                    raise StartError(
                        f"the engine did not start within {self._start_timeout:g} s; raise "
                        "engine.start_timeout (or rater.start_timeout) if it needs longer"
                    ) from None
        self._heartbeat.waiting_for = reader.waiting_for
        self._heartbeat.findings = reader.findings
        return replace(reader, usage=self._usage, worker=self._heartbeat.name)


Outcome = Summary | CommandError
MakeWorker = Callable[[Placement], Worker]
"""Makes a worker, in the process in which it will work."""
Done = Callable[[Outcome], None]
"""Called with the summary of each document, or with an error that ends the run later."""
ShouldStop = Callable[[], CommandError | None]
"""Called every second; returns the error that ends the execution, or None."""
_AT_ONCE = (OutageError, StartError, UsageError)  # errors that end a run at once
_ERRORS = (AccountingError, StorageError, *_AT_ONCE)


async def outcome(worker: Worker, document: DocumentWork) -> Outcome:
    """The summary of work on a document, or the error that it ended with. The error is returned, as
    Ray preserves only the text of an exception that is raised. Raises EngineError: the worker must
    be made anew, and the document executed again."""
    try:
        summary = await worker.work(document.document_id, document.units, document.num_words)
    except _ERRORS as error:
        return error
    return replace(summary, words=document.words)


def take(result: Outcome, done: Done) -> None:
    """Handle an outcome in the driver. Raises the errors that end a run at once."""
    if isinstance(result, _AT_ONCE):
        raise result
    done(result)


@contextmanager
def ended_by(should_stop: ShouldStop) -> Iterator[None]:
    """Call `should_stop` every second, in a thread, and raise the error that it returns from the
    `with` block. The block waits inside Ray or for a thread, so a signal interrupts it: SIGUSR1, as
    `nohup` may have disabled SIGINT."""
    is_over, raised = threading.Event(), list[CommandError]()

    def watch() -> None:
        error: CommandError | None = None
        try:
            while not is_over.wait(1.0):
                with ignore_refusals():  # retried in a second
                    if error := should_stop():
                        return
        finally:
            if not is_over.is_set():  # or an unwatched run would have no deadline
                raised.append(error or EngineError("the watch over the run failed, see above"))
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        if raised:
            raise raised[0] from None
        raise
    finally:
        is_over.set()
        signal.signal(signal.SIGUSR1, before)


def execute_inline(
    make_worker: MakeWorker,
    num_in_flight: int,
    work: Work,
    should_stop: ShouldStop,
    done: Done,
) -> None:
    """Execute the documents of `work` by one worker in this process, without Ray, `num_in_flight`
    at a time: `cluster=inline`. It works in a thread, as the caller's may have an event loop (a
    notebook's). `done` is called in the order the documents finish. Raises the errors of
    `pipeline.cluster.execute_documents`, except those of placing workers.

    After an EngineError another worker goes on with the rest, but nothing isolates a crash: the
    command ends, and the same command resumes it. Nor can a thread be ended: a deadline or an
    interruption waits for files that are being read.
    """
    loop = asyncio.new_event_loop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_execute(make_worker, num_in_flight, work, done))

    def cancel_all() -> None:  # documents in flight, and an engine that starts
        for task in asyncio.all_tasks(loop):
            task.cancel()

    with ended_by(should_stop), ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        try:
            running.result()
        finally:
            with suppress(RuntimeError):  # the loop is closed: everything has ended
                loop.call_soon_threadsafe(cancel_all)


async def _execute(make_worker: MakeWorker, num_in_flight: int, work: Work, done: Done) -> None:
    """Execute every document, by another worker after each dead engine, first the documents that
    were in flight then. Raises EngineError if a document alone was cancelled."""
    left: Iterator[DocumentWork] = iter(work.documents)
    in_flight: list[DocumentWork] = []
    this = asyncio.current_task()

    async def take_documents() -> None:
        for document in left:
            in_flight.append(document)
            take(await outcome(worker, document), done)
            in_flight.remove(document)

    # Checked here, too, as `gather` does not raise a cancellation that comes while a dead engine is
    # closed, or at which an engine dies.
    while not (this and this.cancelling()):
        left, in_flight = chain(in_flight, left), []
        worker = make_worker(Placement("inline"))
        tasks = [asyncio.create_task(take_documents()) for _ in range(num_in_flight)]
        try:
            await asyncio.gather(*tasks)
            return
        except asyncio.CancelledError:
            if this and this.cancelling():
                raise
            raise EngineError("a document was cancelled; run the same command") from None
        except StartError:
            raise
        except EngineError:  # the marker of the document that raised it stays
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await worker.close()
