"""Call a function every second while an execution runs, and raise its errors, and those of
documents, in the main thread."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.core.errors import AccountingError, EndedError, EngineError, StorageError
from pipeline.files.storage_retries import Advisory


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
