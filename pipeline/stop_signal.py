"""The signal that a run is ending: workers start no more units and finish those in flight."""

import time
from asyncio import to_thread

from pipeline.place import AnyPath, place, write

_SECONDS_BETWEEN_LOOKS = 2.0


class StopSignal:
    """A file in the run's folder; each launch has its own, so it does not stop the next launch."""

    def __init__(self, run: AnyPath, launch: str) -> None:
        self._file = place(run) / "alive" / f"{launch}.stop"
        self._looked = float("-inf")
        self._is_sent = False

    def send(self, why: str) -> None:
        """Signal the workers that the run is ending."""
        write(self._file, f"{why}\n".encode())

    async def is_sent(self) -> bool:
        """Whether the run is ending; checks the file at most every two seconds."""
        now = time.monotonic()
        if not self._is_sent and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            self._is_sent = await to_thread(self._file.exists)
        return self._is_sent
