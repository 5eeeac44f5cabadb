"""Execute documents by one worker in this process, without Ray: `cluster=inline`; and the end of
any execution by `should_stop`.

Nothing isolates a crash: what ends the worker ends the command, and the same command resumes it.
Nor can a thread be ended: a deadline or an interruption waits for files that are being read.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Self

from pipeline.core.errors import CommandError, EngineError, StartError
from pipeline.files.storage_retries import ignore_refusals
from pipeline.work.executions import DocumentWork, Work
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import AnyWorker, Done, MakeWorker, outcome, take

ShouldStop = Callable[[], CommandError | None]
"""Asked every second; returns the error that ends the execution."""


@contextmanager
def ended_by(should_stop: ShouldStop) -> Iterator[None]:
    """Ask `should_stop` every second, in a thread; the error that it returns is raised from the
    `with` block.

    The block waits inside Ray or for a thread, so it is interrupted by a signal: SIGUSR1, as
    `nohup` may have disabled SIGINT.
    """
    is_over, raised = threading.Event(), list[CommandError]()

    def ask() -> None:
        error: CommandError | None = None
        try:
            while not is_over.wait(1.0):
                with ignore_refusals():  # it is asked again
                    if error := should_stop():
                        return
        finally:
            if not is_over.is_set():  # else a run that nobody watches would have no deadline
                raised.append(error or EngineError("the watch over the run failed, see above"))
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=ask, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        if raised:
            raise raised[0] from None
        raise
    finally:
        is_over.set()
        signal.signal(signal.SIGUSR1, before)


class InlineHost:
    """The thread and event loop in which workers of this process execute: the caller's thread may
    have an event loop of its own, as a notebook's."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._runner = asyncio.Runner(loop_factory=lambda: self.loop)
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._thread:
            self._thread.submit(self._runner.close).result()

    def execute(
        self,
        make_worker: MakeWorker,
        num_in_flight: int,
        work: Work,
        should_stop: ShouldStop,
        done: Done,
    ) -> None:
        """Execute the documents of `work`, `num_in_flight` at a time; `done` is called in the order
        they finish. Raises what `pipeline.cluster.execute_documents` does, but for the errors of
        placing workers. After an EngineError another worker goes on with the rest."""
        take_row = partial(take, done=done)
        execution = _Execution(make_worker, work.documents, num_in_flight, take_row)
        with ended_by(should_stop):
            self._finish(execution)

    def _finish(self, execution: "_Execution") -> None:
        """Execute every document. An interruption cancels those in flight."""
        running = self._thread.submit(self._runner.run, execution.finish())
        try:
            running.result()
        finally:
            if not running.done():
                with suppress(RuntimeError):  # the loop has just been closed
                    self.loop.call_soon_threadsafe(execution.cancel)
                wait([running])


class _Execution:
    """The documents of an execution, in the loop of a host."""

    def __init__(
        self,
        make_worker: MakeWorker,
        documents: Iterable[DocumentWork],
        num_in_flight: int,
        take_row: Callable[[dict[str, str]], None],
    ) -> None:
        self._make_worker, self._take_row = make_worker, take_row
        self._left: Iterator[DocumentWork] = iter(documents)
        self._begun: list[DocumentWork] = []  # those that are in flight
        self._num_in_flight = num_in_flight
        self._is_interrupted = False

    async def finish(self) -> None:
        """Execute every document. Raises EngineError if one was cancelled, but by `cancel`."""
        try:
            await self._all()
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise EngineError("a document was cancelled; run the same command") from None

    def cancel(self) -> None:
        """Cancel what is in flight."""
        self._is_interrupted = True
        for task in asyncio.all_tasks():
            task.cancel()

    async def _all(self) -> None:
        while True:
            worker = self._make_worker(Placement("inline"))
            try:
                await self._with(worker)
                return
            except StartError:
                raise
            except EngineError:  # the marker of the document that raised it stays
                continue
            finally:
                await worker.close()

    async def _with(self, worker: AnyWorker) -> None:
        """Execute what is left with this worker: first what was in flight before, in its order."""
        self._left, self._begun = chain(self._begun, self._left), []
        tasks = [asyncio.create_task(self._next(worker)) for _ in range(self._num_in_flight)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _next(self, worker: AnyWorker) -> None:
        for document in self._left:
            self._begun.append(document)
            self._take_row(await outcome(worker, document))
            self._begun.remove(document)
