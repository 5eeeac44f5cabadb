"""End a run gracefully at its deadline, or on SIGTERM (which spot machines receive).

No new unit is started, those in flight have `cluster.grace_minutes` to be committed, and the
command exits with code 4. The same command resumes.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import FrameType, TracebackType
from typing import Any, Self

from jobs.config.deadline import deadline
from pipeline.core.errors import EndedError
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage_retries import ignore_refusals
from pipeline.worker.heartbeat import SECONDS_BETWEEN_BEATS, StopSignal

# By then every worker has checked the signal and written another heartbeat.
_SECONDS_TO_SEE = 3.0 + SECONDS_BETWEEN_BEATS


class GracefulStop:
    """Context manager of a run that ends it at a deadline or on SIGTERM; `look` is called every
    second during an execution."""

    def __init__(self, cluster: ClusterSettings, now: datetime | None = None) -> None:
        """Read the deadline. Raises UsageError if it is malformed, PassedError if it has passed."""
        self._grace = 60 * cluster.grace_minutes
        self._over_at: float | None = None  # end of the grace period, as time.time()
        self._begins_at: float | None = None  # start of the grace period
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGTERM, self._before)

    @property
    def reason(self) -> str:
        """The reason why the run ended early."""
        return f"ended by {self._why}"

    def workers_see(self, stop: StopSignal) -> None:
        """Send `stop` when the grace period begins; call this once workers check it."""
        self._signal = stop
        signal.signal(signal.SIGTERM, self._terminated)  # joining Ray has replaced the handler

    def look(self) -> None:
        """Signal the workers when the grace period begins. Raises EndedError when it is over, even
        if storage refused the signal."""
        now = time.time()
        if self._begins_at is None or now < self._begins_at:
            return
        if self._over_at is not None and now >= self._over_at:
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
        are workers, acts as Ctrl-C."""
        if self._signal is None or self._begins_at == 0.0:
            raise KeyboardInterrupt
        now = time.time()
        self._why = "SIGTERM"
        self._begins_at, self._over_at = 0.0, min(now + self._grace, self._over_at or now + 1e9)
