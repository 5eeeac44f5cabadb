"""Outcomes of documents: a summary or an error, as texts that travel between processes; the
interface of a worker, and how many documents it has in flight; the watch over an execution in the
main process, which raises errors of documents there."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Protocol

from pipeline.core.calls import UsageCounters
from pipeline.core.errors import (
    AccountingError,
    EndedError,
    EngineError,
    OutageError,
    StartError,
    StorageError,
    UsageError,
)
from pipeline.files.storage_retries import Advisory
from pipeline.work.executions import DocumentWork
from pipeline.work.units import Unit
from pipeline.worker.crashes import Placement
from pipeline.worker.executor import Summary


class Failures:
    """Errors of documents that are raised once other documents are finished.

    `grace`: the seconds that documents in flight have left after a StorageError.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._refused_at: float | None = None
        self.first: Exception | None = None  # an AccountingError before a StorageError

    def add(self, error: Exception) -> None:
        is_refusal = isinstance(error, StorageError)
        if is_refusal and self._refused_at is None:
            self._refused_at = time.monotonic()
        if self.first is None or (isinstance(self.first, StorageError) and not is_refusal):
            self.first = error

    def look(self) -> None:
        """Raise the error once the grace period of documents in flight is over."""
        since = self._refused_at
        if self.first and since is not None and time.monotonic() - since > self._grace:
            raise self.first


@contextmanager
def watch_in_thread(watch: Callable[[], None], failures: Failures) -> Iterator[None]:
    """Call `watch` every second in a thread; an error it raises is raised from the `with` block,
    except a filesystem's, after which it is called again. Errors of `failures.look` are raised,
    too.

    The block waits inside Ray or for a thread, so it is interrupted by a signal: SIGUSR1, as
    `nohup` may have disabled SIGINT.
    """
    is_over, is_gone = threading.Event(), threading.Event()
    raised: list[Exception] = []
    advisory = Advisory()

    def look() -> None:
        try:
            while not is_over.wait(1.0):
                with advisory.attempt():
                    watch()
                failures.look()
        except (AccountingError, EndedError, EngineError, StorageError) as error:
            raised.append(error)
        finally:
            is_gone.set()
            if not is_over.is_set():  # else a run that nobody watches would have no deadline
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=look, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        if raised:
            raise raised[0] from None
        if is_gone.is_set():
            raise EngineError("the watch over the run failed, see above") from None
        raise
    finally:
        is_over.set()
        signal.signal(signal.SIGUSR1, before)


# Documents in flight of a worker beyond its request slots: some of them are between requests.
DOCUMENTS_OVER_SLOTS = 4


class AnyWorker(Protocol):
    """The interface of `pipeline.worker.worker.Worker` that executions use."""

    usage: UsageCounters

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary: ...

    async def close(self) -> None: ...


MakeWorker = Callable[[Placement], AnyWorker]
"""Makes a worker; called where the worker is to work."""

# Ray preserves only the text of an exception, so these return as rows; the driver raises them.
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (AccountingError, OutageError, StartError, StorageError, UsageError)
}


class Outcomes:
    """The outcomes of one worker's documents. After a StorageError no document is begun: its
    replies could not be kept."""

    def __init__(self, worker: AnyWorker) -> None:
        self._worker = worker
        self._refused: StorageError | None = None

    async def outcome(self, document: DocumentWork) -> dict[str, str]:
        """Work on a document. Returns `error`, the name of an error class or "", and `payload`,
        the error's message or the Summary as JSON. Raises EngineError: the worker has to be made
        anew, and the document executed again."""
        try:
            if self._refused:
                raise self._refused
            summary = await self._worker.work(document.document_id, document.units)
        except tuple(_ERRORS.values()) as error:
            if isinstance(error, StorageError):
                self._refused = error
            return {"error": type(error).__name__, "payload": str(error)}
        return {"error": "", "payload": json.dumps({**asdict(summary), "words": document.words})}


def take(row: Mapping[str, str], finished: Callable[[Summary], None], failures: Failures) -> None:
    """Handle an outcome in the driver. Raises the errors that end a run at once."""
    if not row["error"]:
        finished(Summary(**json.loads(row["payload"])))
        return
    error = _ERRORS[row["error"]](row["payload"])
    if not isinstance(error, (AccountingError, StorageError)):
        raise error
    failures.add(error)
