"""End a run that makes no progress. A slow run is not stalled: a model may take an hour to load."""

import time
from collections.abc import Callable
from typing import Any

from pipeline.core.errors import EngineError
from pipeline.store.runs.run_folder import RunFolder

_SECONDS_BETWEEN_LOOKS = 5.0


class StallWatch:
    """Watches one execution by the heartbeats of its workers; also passes them to `on_heartbeats`.

    A starting engine counts as progress, and so does one whose server is unreachable: they have
    limits of their own (engine.start_timeout, engine.outage_minutes). While storage refuses
    progress files or heartbeats, time does not count: workers may be at work without being seen.
    """

    def __init__(
        self,
        folder: RunFolder,
        launch: str,
        stall_minutes: float,
        on_heartbeats: Callable[[list[dict[str, Any]]], None] = lambda workers: None,
    ) -> None:
        self._folder, self._launch = folder, launch
        self._on_heartbeats = on_heartbeats
        self._stall_minutes = stall_minutes
        self._moved = self._looked = time.monotonic()
        self._done: dict[str, int] = {}  # worker -> calls and units finished

    def moved(self) -> None:
        """Record that a document was finished, which is progress."""
        self._moved = time.monotonic()

    def look(self) -> None:
        """Raise EngineError where no call and no unit was finished for `stall_minutes`."""
        now = time.monotonic()
        if now - self._looked < min(_SECONDS_BETWEEN_LOOKS, 15 * self._stall_minutes):
            return
        waited, self._looked = now - self._looked, now
        self._moved += waited  # unless the workers are seen
        workers = self._folder.alive(self._launch)
        self._on_heartbeats(workers)
        if self._folder.advisory.is_refused:
            return
        self._moved -= waited
        for worker in workers:
            name, done = worker["worker"], worker["calls"] + worker["units"]
            is_waiting = worker["is_starting"] or worker.get("waiting_for")
            if is_waiting or done > self._done.get(name, -1):
                self._moved, self._done[name] = now, done
        # Before the first heartbeat, cluster.wait_minutes is the limit.
        if self._done and now - self._moved > 60 * self._stall_minutes:
            raise EngineError(
                f"nothing was finished for cluster.stall_minutes={self._stall_minutes:g}; run the "
                "same command to resume"
            )
