"""End a run gracefully at its deadline, on SIGTERM (which spot machines receive), or where it makes
no progress.

No new unit is started, those in flight have `cluster.grace_minutes` to be committed, and the
command exits with code 4. The same command resumes. A slow run is not stalled: a model may take an
hour to load."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf
from types import FrameType
from typing import Any, Self

from jobs.config.clusters import deadline
from jobs.run.interruption import end
from pipeline.core.errors import EndedError, EngineError
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage_retries import ignore_refusals
from pipeline.store.runs.run_folder import RunFolder
from pipeline.worker.heartbeat import SECONDS_BETWEEN_BEATS, StopSignal

_SECONDS_BETWEEN_LOOKS = 5.0  # at heartbeats
# By then every worker has checked the signal and written another heartbeat.
_SECONDS_TO_SEE = 3.0 + SECONDS_BETWEEN_BEATS


class GracefulStop:
    """Context manager of a run that ends it at a deadline or on SIGTERM; `look` is called every
    second during an execution."""

    def __init__(self, cluster: ClusterSettings, now: datetime | None = None) -> None:
        """Read the deadline. Raises UsageError if it is malformed, PassedError if it has passed."""
        self._grace = 60 * cluster.grace_minutes
        self._begins_at = self._over_at = inf  # of the grace period, as time.time()
        if cluster.deadline is not None:
            self._over_at = deadline(cluster.deadline, now or datetime.now()).timestamp()
            self._begins_at = self._over_at - self._grace
            self._why = f"cluster.deadline={cluster.deadline}"
        self._signal: StopSignal | None = None
        self.has_begun = False
        self._signalled_at = 0.0

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._terminated)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    @property
    def reason(self) -> str:
        """The reason why the run ended early."""
        return f"ended by {self._why}"

    def workers_see(self, stop: StopSignal) -> None:
        """Send `stop` when the grace period begins; call this once workers check it."""
        self._signal = stop

    def look(self) -> None:
        """Signal the workers when the grace period begins. Raises EndedError when it is over, even
        if storage refused the signal."""
        now = time.time()
        if now < self._begins_at:
            return
        if now >= self._over_at:
            self.has_begun = True
            raise EndedError(self.reason)
        if not self.has_begun and self._signal:
            with ignore_refusals():  # again in a second if it is refused
                self._signal.send(self._why)
                self.has_begun, self._signalled_at = True, now

    def seen(self, workers: Sequence[Mapping[str, Any]]) -> None:
        """Check the workers' heartbeats. Raises EndedError in the grace period once no document is
        in flight."""
        if not self.has_begun or time.time() - self._signalled_at < _SECONDS_TO_SEE:
            return
        if not any(worker["documents"] for worker in workers):
            raise EndedError(self.reason)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM: the first one starts the grace period. A second one, or one before there
        are workers, ends this process."""
        if self._signal is None or self._begins_at == 0.0:
            end(number, frame)
        self._why = "SIGTERM"
        self._begins_at, self._over_at = 0.0, min(time.time() + self._grace, self._over_at)


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
        self._folder, self._launch, self._stall_minutes = folder, launch, stall_minutes
        self._on_heartbeats = on_heartbeats
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
