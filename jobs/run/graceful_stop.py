"""What ends a run early: its deadline, SIGTERM, Ctrl-C, storage that refuses, no progress. Then no
new unit is started, and those in flight have `cluster.grace_minutes` (none after Ctrl-C)."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from math import inf
from types import FrameType
from typing import Any, Self

from jobs.config.run_config import deadline
from pipeline.core.errors import (
    AccountingError,
    CommandError,
    EndedError,
    EngineError,
    StorageError,
    end_at_signal,
)
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage import ignore_refusals
from pipeline.store.runs.run_folder import RunFolder
from pipeline.worker.progress import SECONDS_BETWEEN_BEATS, StopSignal, Summary

_SECONDS_BETWEEN_LOOKS = 5.0  # at heartbeats
# By then every worker has checked the signal and written another heartbeat.
_SECONDS_TO_SEE = 3.0 + SECONDS_BETWEEN_BEATS


class GracefulStop:
    """Handles SIGTERM and Ctrl-C, and looks for the other reasons to stop. `failure` is the error
    of a document with which the run ends."""

    def __init__(self, cluster: ClusterSettings, now: datetime | None = None) -> None:
        """Read the deadline. Raises UsageError if it is malformed, PassedError if it has passed."""
        self._grace, self._stall_minutes = 60 * cluster.grace_minutes, cluster.stall_minutes
        self._begins_at = self._over_at = inf  # of the grace period, as time.time()
        if cluster.deadline is not None:
            self._over_at = deadline(cluster.deadline, now or datetime.now()).timestamp()
            self._begins_at = self._over_at - self._grace
            self._why = f"cluster.deadline={cluster.deadline}"
        self._folder: RunFolder | None = None
        self.has_begun = False
        self.failure: CommandError | None = None
        self._is_refused = False

    def __enter__(self) -> Self:
        # `nohup` and a shell's & make a process ignore Ctrl-C.
        numbers = [n for n in (signal.SIGTERM, signal.SIGINT)
                   if signal.getsignal(n) is not signal.SIG_IGN]  # fmt: skip
        self._before = {number: signal.signal(number, self._signalled) for number in numbers}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def reason(self) -> str:
        return f"ended by {self._why}"

    @contextmanager
    def watch(
        self,
        folder: RunFolder,
        launch: str,
        on_heartbeats: Callable[[list[dict[str, Any]]], None] = lambda workers: None,
    ) -> Iterator[None]:
        """Until the `with` block ends, stops are graceful, and heartbeats passed on."""
        self._folder, self._launch, self._on_heartbeats = folder, launch, on_heartbeats
        self._signal = StopSignal(folder.path, launch)
        self._moved = self._looked = time.monotonic()
        self._done: dict[str, int] = {}  # worker -> calls and units finished
        try:
            yield
        finally:
            self._folder = None

    def done(self, outcome: Summary | CommandError) -> None:
        """Count a document as progress; a StorageError begins the grace period."""
        self._moved = time.monotonic()
        if not isinstance(outcome, CommandError):
            return
        if self.failure is None or isinstance(outcome, AccountingError):
            self.failure = outcome
        if isinstance(outcome, StorageError):
            self._is_refused = True
            self._begin(str(outcome))

    def should_stop(self) -> CommandError | None:
        """The error to end with now; the workers are told when the grace period begins."""
        now = time.time()
        if now >= self._over_at:  # even if storage refused the signal
            self.has_begun = True
            return self._ended()
        if self._folder is None:
            return None
        if now >= self._begins_at and not self.has_begun:
            with ignore_refusals():  # again in a second if it is refused
                self._signal.send(self._why)
                self.has_begun, self._signalled_at = True, now
        return self._of_workers(self._folder)

    def _of_workers(self, folder: RunFolder) -> CommandError | None:
        """The reason to stop that the heartbeats show: in the grace period no document is in
        flight, or no call and no unit was finished for `stall_minutes`. An engine that starts, or
        waits for its server, has its own limits. While storage refuses to list
        heartbeats, the minutes are not counted: workers may work unseen."""
        now = time.monotonic()
        if now - self._looked < min(_SECONDS_BETWEEN_LOOKS, 15 * self._stall_minutes):
            return None
        waited, self._looked = now - self._looked, now
        workers: list[dict[str, Any]] | None = None
        with ignore_refusals():
            workers = folder.alive(self._launch)
        if workers is None:
            self._moved += waited
            return None
        self._on_heartbeats(workers)
        is_seen = self.has_begun and time.time() - self._signalled_at >= _SECONDS_TO_SEE
        if is_seen and not any(worker["documents"] for worker in workers):
            return self._ended()
        for worker in workers:
            name, done = worker["worker"], worker["calls"] + worker["units"]
            is_waiting = worker["is_starting"] or worker.get("waiting_for")
            if is_waiting or done > self._done.get(name, -1):
                self._moved, self._done[name] = now, done
        # Before the first heartbeat, cluster.wait_minutes is the limit.
        if self._done and now - self._moved > 60 * self._stall_minutes:
            return EngineError(
                f"nothing was finished for cluster.stall_minutes={self._stall_minutes:g}; run the "
                "same command to resume"
            )
        return None

    def _ended(self) -> CommandError:
        return self.failure if self.failure and self._is_refused else EndedError(self.reason)

    def _begin(self, why: str) -> None:
        self._why = why
        self._begins_at, self._over_at = 0.0, min(time.time() + self._grace, self._over_at)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """Begin the grace period at SIGTERM, end the execution at Ctrl-C. A second signal, or one
        outside of `watch`, is handled as before this run."""
        is_again = (self._over_at if number == signal.SIGINT else self._begins_at) == 0.0
        if self._folder is None or is_again:
            handler = self._before[signal.Signals(number)]
            (handler if callable(handler) else end_at_signal)(number, frame)
        elif number == signal.SIGINT:
            self._why, self._over_at = "Ctrl-C", 0.0
        else:
            self._begin("SIGTERM")
