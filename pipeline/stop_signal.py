"""The sign that a run is ending: workers take on nothing new and finish what they have in hand."""

import time
from asyncio import to_thread

from pipeline.place import AnyPath, place, write

_SECONDS_BETWEEN_LOOKS = 2.0


class StopSignal:
    """A file in the run's folder, one for each launch: the next command begins without it."""

    def __init__(self, run: AnyPath, launch: str) -> None:
        self._file = place(run) / "alive" / f"{launch}.stop"
        self._looked = float("-inf")
        self._is_up = False

    def put_up(self, why: str) -> None:
        """From now on the run is ending."""
        write(self._file, f"{why}\n".encode())

    async def is_up(self) -> bool:
        """Whether it is ending; what was seen two seconds ago at most."""
        now = time.monotonic()
        if not self._is_up and now - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            self._is_up = await to_thread(self._file.exists)
        return self._is_up
