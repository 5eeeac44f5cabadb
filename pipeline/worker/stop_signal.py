"""The signal that a run is ending: workers start no more units and finish those in flight."""

import time
from asyncio import to_thread

from pipeline.files.place import AnyPath, as_path, exists, write
from pipeline.files.storage_retries import Advisory, limit_retries

_SECONDS_BETWEEN_LOOKS = 2.0


class StopSignal:
    """A file in the run's folder; each launch has its own, so it does not stop the next launch."""

    def __init__(self, run: AnyPath, launch: str) -> None:
        self._file = as_path(run) / "alive" / f"{launch}.stop"
        self._looked = float("-inf")
        self._is_sent = False
        self._advisory = Advisory()

    def send(self, why: str) -> None:
        """Signal the workers that the run is ending. Raises StorageError after a single try."""
        with limit_retries(0):  # the caller tries again
            write(self._file, f"{why}\n".encode())

    async def is_sent(self) -> bool:
        """True if the run is ending; checks the file at most every two seconds."""
        now = time.monotonic()
        if not self._is_sent and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            await to_thread(self._look)
        return self._is_sent

    def _look(self) -> None:
        with self._advisory.attempt():  # checked again in two seconds
            self._is_sent = exists(self._file)
