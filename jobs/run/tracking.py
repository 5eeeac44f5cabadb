"""Report a run to its tracker, in a thread of its own: a tracker that fails, or is slow, is one
warning and does not hold up the run."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from jobs.graph.manifest import run_manifest
from jobs.graph.resolved_run import ResolvedRun
from pipeline.core.errors import contained
from pipeline.core.redaction import redacted
from pipeline.core.settings import sha
from pipeline.store.runs.run_folder import RunFolder
from pipeline.trackers.tracker import Rows, TrackedRun, Tracker, TrackerSettings

_FIGURES = (  # of the state of a run's progress
    "units", "planned_units", "problems", "calls", "tokens", "rows_per_second",
    "tokens_per_second", "share",
)  # fmt: skip
_LAST_SECONDS = 60.0  # for what is still to be sent when the run has ended
_FAILED = 1
Call = Callable[[Tracker], None]


class Tracking:
    """Reports one launch of a run to the tracker of `settings`."""

    def __init__(
        self, settings: TrackerSettings, run: TrackedRun, warn: Callable[[str], None]
    ) -> None:
        self._settings, self._run, self._warn = settings, run, warn
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="tracker", daemon=True)
        self._headline: Rows = ()
        self._exit_code = _FAILED
        self._thread.start()

    def progress(self, state: Mapping[str, Any]) -> None:
        """Report how far the run is, unless the tracker is still busy with an earlier report."""
        figures = {name: float(state[name]) for name in _FIGURES if name in state}
        if self._calls.empty():
            self._calls.put(lambda tracker: tracker.progress(figures))

    def result(self, headline: Rows, exit_code: int) -> None:
        """Set the run's final table and exit code, which are reported at its end."""
        self._headline, self._exit_code = headline, exit_code

    def close(self) -> None:
        """Report the end, and wait for the tracker for a while."""
        self._calls.put(lambda tracker: tracker.end(self._headline, self._exit_code))
        self._calls.put(None)
        self._thread.join(_LAST_SECONDS)
        if self._thread.is_alive():
            self._complain(f"has not taken everything within {_LAST_SECONDS:g} s of the run's end")

    def _send(self) -> None:
        with contained() as raised:
            tracker = self._settings.start(self._run)
            while tracker and (call := self._calls.get()):
                call(tracker)
        if raised.error:
            self._complain(raised.line())

    def _complain(self, why: str) -> None:
        self._warn(redacted(f"tracker={self._settings.name}: {why}; the run goes on without it"))


@contextmanager
def tracked(run: ResolvedRun, folder: RunFolder, warn: Callable[[str], None]) -> Iterator[Tracking]:
    """Track the run in the `with` block."""
    run_id = sha(str(folder.path.absolute()), 16)
    given = TrackedRun(run.name, run_id, run_manifest(run)["config"])
    tracking = Tracking(run.config.tracker, given, warn)
    try:
        yield tracking
    finally:
        tracking.close()
