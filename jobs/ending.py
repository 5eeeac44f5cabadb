"""Ends a run in good order at its deadline, or at SIGTERM, a spot machine's notice.

Nothing new is begun, what is in flight has `cluster.grace_minutes` to be committed, and the command
ends with exit code 4: the same one goes on from there.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import FrameType, TracebackType
from typing import Any, Self

from pipeline.errors import EndedError, UsageError
from pipeline.heartbeat import SECONDS_BETWEEN_BEATS
from pipeline.settings import ClusterSettings
from pipeline.stop_signal import StopSignal

# Within this time workers have seen the signal, and sent another heartbeat.
_SECONDS_TO_SEE = 3.0 + SECONDS_BETWEEN_BEATS


class Ending:
    """Entered by a run; `look` is called every second while workers are at work."""

    def __init__(self, cluster: ClusterSettings, now: datetime | None = None) -> None:
        """Raises UsageError where the deadline is none, or over."""
        self._grace = 60 * cluster.grace_minutes
        self._over_at: float | None = None  # both in the seconds of time.time()
        self._begins_at: float | None = None
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
        """Why the run ended before its end."""
        return f"ended by {self._why}"

    def workers_see(self, stop: StopSignal) -> None:
        """From now on there are workers, which look at `stop`; it is sent before they are ended."""
        self._signal = stop
        signal.signal(signal.SIGTERM, self._terminated)  # Ray has set its own when it was joined

    def look(self) -> None:
        """Signal the workers when it is time. Raises EndedError after the grace period."""
        now = time.time()
        if self._begins_at is None or now < self._begins_at:
            return
        if not self.has_begun and self._signal:
            self.has_begun, self._signalled_at = True, now
            self._signal.send(self._why)
        if self._over_at is not None and now >= self._over_at:
            raise EndedError(self.reason)

    def seen(self, workers: Sequence[Mapping[str, Any]]) -> None:
        """Take the workers' heartbeats. Raises EndedError where nothing is in flight any more."""
        if not self.has_begun or time.time() - self._signalled_at < _SECONDS_TO_SEE:
            return
        if not any(worker["documents"] for worker in workers):
            raise EndedError(self.reason)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        """The first SIGTERM begins the end; before there are workers, and the second time, it is
        as Ctrl-C."""
        if self._signal is None or self._begins_at == 0.0:
            raise KeyboardInterrupt
        now = time.time()
        self._why = "SIGTERM"
        self._begins_at, self._over_at = 0.0, min(now + self._grace, self._over_at or now + 1e9)


def deadline(given: str, now: datetime) -> datetime:
    """When `given` is, seen from `now`. Raises UsageError where it is no time, or over."""
    try:
        if len(given) <= len("07:00"):
            clock = datetime.strptime(given, "%H:%M")  # on this machine's clock
            found = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            return found if found > now else found + timedelta(days=1)
        found = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(
            f"cluster.deadline={given}: no time; write 07:00, or 2026-12-01T07:00"
        ) from None
    if found.timestamp() <= now.timestamp():
        raise UsageError(f"cluster.deadline={given}: is over; give a later one")
    return found
