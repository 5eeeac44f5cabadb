"""Execute the phases of a run, one Ray Data execution after another, with progress and limits."""

import functools
import uuid
from contextlib import suppress
from typing import Any

from jobs.ending import Ending
from jobs.eta import REPLY_COSTS, weights
from jobs.phases import Phase
from jobs.preparation import Prepared
from jobs.progress import Progress
from jobs.scoring import with_scoring
from jobs.stall import StallWatch
from pipeline.engines import start_reader
from pipeline.errors import EndedError
from pipeline.executor import Summary
from pipeline.stop_signal import StopSignal
from pipeline.store.runs import RunFolder
from pipeline.worker import Start


class RunExecutor:
    """Executes one launch of a run. `progress` counts what it did."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self._config = prepared.config
        self._folder = folder
        self._keys = sorted(prepared.keys, key=lambda key: -key.num_words)
        self._units = prepared.units
        self._phases = with_scoring(prepared.phases, prepared.units)
        self._launch = uuid.uuid4().hex
        pending = sum(not unit.is_done for unit in prepared.planned())
        self._publish = functools.partial(folder.write_progress, self._launch)
        self.progress = Progress(pending, self._publish, refused=folder.advisory.state)
        self.ended: str | None = None  # why the run ended early; null if it did not

    def execute(self, ending: Ending) -> None:
        """Execute the phases, until `ending` has begun. Raises what workers raise."""
        from pipeline.cluster import join  # imported here, as ray takes a second

        join(self._config.cluster.address)
        ending.workers_see(StopSignal(self._folder.path, self._launch))
        with self.progress:
            for phase in self._phases:
                with suppress(EndedError):  # units still in flight are not committed
                    self._phase(phase, ending)
                if ending.has_begun:
                    self.ended = ending.reason
                    return

    def _phase(self, phase: Phase, ending: Ending) -> None:
        from pipeline.cluster import run_items

        cluster = self._config.cluster
        pool = phase.pool(cluster)
        make = phase.make_worker(self._folder.path, self._launch, self._start(phase))
        asking = {step.id for step in phase.steps if step.prompts}
        for name, items in phase.executions(self._keys, self._units, pool.size):
            on_heartbeats = functools.partial(_take_heartbeats, ending, self.progress)
            stall = StallWatch(self._folder, self._launch, cluster.stall_minutes, on_heartbeats)
            watch = functools.partial(_look, ending, stall)
            finished = functools.partial(_count, stall, self.progress)
            planned = weights(items, self._keys, asking)
            self.progress.start(name, planned, REPLY_COSTS if phase.engine else None)
            self._publish(self.progress.state())
            tags = {"run": self._folder.path.name, "phase": name}
            try:
                run_items(make, items, pool, watch, tags, finished)
            finally:
                self._folder.took(self.progress.took())
            if ending.has_begun:
                return

    def _start(self, phase: Phase) -> Start | None:
        if phase.engine is None:
            return None
        how = (self._config.family_resolved(), self._config.reply_format)
        return functools.partial(start_reader, phase.engine, *how)


def _look(ending: Ending, stall: StallWatch) -> None:
    ending.look()
    stall.look()


def _count(stall: StallWatch, progress: Progress, summary: Summary) -> None:
    stall.moved()
    progress.add(summary)


def _take_heartbeats(ending: Ending, progress: Progress, workers: list[dict[str, Any]]) -> None:
    progress.alive(workers)
    ending.seen(workers)
