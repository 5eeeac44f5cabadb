"""Execute the phases of a run, one execution after another, with progress and limits, by Ray or by
one worker in this process."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from jobs.graph.phases import Phase, with_scoring
from jobs.graph.preparation import Prepared
from jobs.run.eta import weights
from jobs.run.graceful_stop import GracefulStop, StallWatch
from jobs.run.progress import Progress
from pipeline.asking.readers import start_reader
from pipeline.core.errors import EndedError
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import DocumentWork
from pipeline.worker.executor import Summary
from pipeline.worker.heartbeat import StopSignal
from pipeline.worker.inline import execute_inline
from pipeline.worker.outcomes import DOCUMENTS_OVER_SLOTS


class RunExecutor:
    """Executes one launch of a run. `progress` counts its calls and units."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self._run = prepared.run
        self._cluster = prepared.run.config.cluster
        self._is_inline = self._cluster.name == "inline"
        self._folder = folder
        self._keys = sorted(prepared.keys, key=lambda key: -key.num_words)
        self._units = prepared.units
        self._phases = with_scoring(prepared.run.phases, prepared.units)
        self._launch = uuid.uuid4().hex
        pending = sum(not unit.is_done for unit in prepared.planned())
        self._publish = partial(folder.write_progress, self._launch)
        self.progress = Progress(pending, self._publish, refused=folder.advisory.state)

    def execute(self, stop: GracefulStop) -> None:
        """Execute the phases, until `stop` has begun. Raises UsageError if there is no Ray to join,
        ClusterError if a local one does not start, and the errors of workers."""
        if not self._is_inline:
            from pipeline.cluster import join  # imported here, as ray takes a second

            join(self._cluster.address)
        stop.workers_see(StopSignal(self._folder.path, self._launch))
        with self.progress:
            for phase in self._phases:
                with suppress(EndedError):  # units still in flight are not committed
                    self._phase(phase, stop)
                if stop.has_begun:
                    self.progress.ended = stop.reason
                    return

    def _phase(self, phase: Phase, stop: GracefulStop) -> None:
        asking = {step.id for step in phase.steps if step.prompts}
        num_workers = (lambda: 1) if self._is_inline else phase.pool(self._cluster).size
        for name, documents in phase.executions(self._keys, self._units, num_workers):
            planned = weights(documents, self._keys, asking)
            self.progress.start(name, planned)
            self._publish(self.progress.state())
            try:
                words = [words for _, words in planned]
                self._execution(phase, name, [*zip(documents, words, strict=True)], stop)
            finally:
                self._folder.took(self.progress.took())
            if stop.has_begun:
                return

    def _execution(
        self,
        phase: Phase,
        name: str,
        documents: Sequence[tuple[DocumentWork, float]],
        stop: GracefulStop,
    ) -> None:
        def on_heartbeats(workers: list[dict[str, Any]]) -> None:
            self.progress.alive(workers)
            stop.seen(workers)

        stall = StallWatch(self._folder, self._launch, self._cluster.stall_minutes, on_heartbeats)

        def watch() -> None:
            stop.look()
            stall.look()

        def finished(summary: Summary) -> None:
            stall.moved()
            self.progress.add(summary)

        how = (self._run.family, self._run.config.reply_format)
        start = partial(start_reader, phase.engine, *how) if phase.engine else None
        make = phase.make_worker(self._folder.path, self._launch, start)
        if self._is_inline:
            in_flight, grace = phase.slots + DOCUMENTS_OVER_SLOTS, 60 * self._cluster.grace_minutes
            own = [document for document, _ in documents]
            execute_inline(make, in_flight, grace, own, watch, finished)
        else:
            from pipeline.cluster import execute_documents

            tags = {"run": self._folder.path.name, "phase": name}  # of the metrics of workers
            pool = phase.pool(self._cluster)
            execute_documents(make, pool, tags, documents, watch, finished)
