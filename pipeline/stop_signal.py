"""The signal that a run is ending: workers start no more units and finish those in flight."""

import time
from asyncio import to_thread

from pipeline.place import AnyPath, exists, place, write
from pipeline.retries import Advisory, within

_SECONDS_BETWEEN_LOOKS = 2.0


class StopSignal:
    """A file in the run's folder; each launch has its own, so it does not stop the next launch."""

    def __init__(self, run: AnyPath, launch: str) -> None:
        self._file = place(run) / "alive" / f"{launch}.stop"
        self._looked = float("-inf")
        self._is_sent = False
        self._advisory = Advisory()

    def send(self, why: str) -> None:
        """Signal the workers that the run is ending. Raises StorageError after a single try."""
        with within(0):  # the caller tries again
            write(self._file, f"{why}\n".encode())

    async def is_sent(self) -> bool:
        """Whether the run is ending; checks the file at most every two seconds."""
        now = time.monotonic()
        if not self._is_sent and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            await to_thread(self._look)
        return self._is_sent

    def _look(self) -> None:
        with self._advisory.attempt():  # looked for again in two seconds
            self._is_sent = exists(self._file)
