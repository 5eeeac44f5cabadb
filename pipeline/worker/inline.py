"""Execute documents by one worker in this process, without Ray: `cluster=inline`; and end any
execution by `should_stop`.

Nothing isolates a crash: if the worker crashes, the command ends, and the same command resumes it.
Nor can a thread be ended: a deadline or an interruption waits for files that are being read.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain

from pipeline.core.errors import CommandError, EngineError, StartError
from pipeline.files.storage import ignore_refusals
from pipeline.work.executions import DocumentWork, Work
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import AnyWorker, Done, MakeWorker, outcome, take

ShouldStop = Callable[[], CommandError | None]
"""Called every second; returns the error that ends the execution, or None."""


@contextmanager
def ended_by(should_stop: ShouldStop) -> Iterator[None]:
    """Call `should_stop` every second, in a thread; the error that it returns is raised from the
    `with` block.

    The block waits inside Ray or for a thread, so it is interrupted by a signal: SIGUSR1, as
    `nohup` may have disabled SIGINT.
    """
    is_over, raised = threading.Event(), list[CommandError]()

    def ask() -> None:
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


def execute_inline(
    make_worker: MakeWorker,
    num_in_flight: int,
    work: Work,
    should_stop: ShouldStop,
    done: Done,
) -> None:
    """Execute the documents of `work`, `num_in_flight` at a time, in a thread, as the caller's may
    have an event loop (a notebook's). `done` is called in the order they finish. After an
    EngineError another worker goes on with the rest. Raises the errors of
    `pipeline.cluster.execute_documents`, except those of placing workers."""
    execution = _Execution(make_worker, work.documents, num_in_flight, done)
    with ended_by(should_stop), ThreadPoolExecutor(1) as thread:
        running = thread.submit(lambda: asyncio.run(execution.finish()))
        try:
            running.result()
        finally:
            execution.cancel()


class _Execution:
    """The documents of an execution, in an event loop."""

    def __init__(
        self,
        make_worker: MakeWorker,
        documents: Iterable[DocumentWork],
        num_in_flight: int,
        done: Done,
    ) -> None:
        self._make_worker, self._done = make_worker, done
        self._left: Iterator[DocumentWork] = iter(documents)
        self._begun: list[DocumentWork] = []  # in flight
        self._num_in_flight = num_in_flight
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def cancel(self) -> None:
        """Cancel the documents in flight, from another thread."""
        self._is_cancelled = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    async def finish(self) -> None:
        """Execute every document. Raises EngineError if one was cancelled, unless by `cancel`."""
        self._loop = asyncio.get_running_loop()
        try:
            while not self._is_cancelled and not await self._by_one_worker():
                pass
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise EngineError("a document was cancelled; run the same command") from None

    async def _by_one_worker(self) -> bool:
        """Execute the remaining documents in order, first those that were in flight before; returns
        False once the engine is dead."""
        worker = self._make_worker(Placement("inline"))
        self._left, self._begun = chain(self._begun, self._left), []
        tasks = [asyncio.create_task(self._next(worker)) for _ in range(self._num_in_flight)]
        try:
            await asyncio.gather(*tasks)
            return True
        except StartError:
            raise
        except EngineError:  # the marker of the document that raised it stays
            return False
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await worker.close()

    async def _next(self, worker: AnyWorker) -> None:
        for document in self._left:
            self._begun.append(document)
            take(await outcome(worker, document), self._done)
            self._begun.remove(document)
