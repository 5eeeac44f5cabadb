"""Execute the phases of a run, one execution after another, with progress and limits, by Ray or by
one worker in this process."""

import functools
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from jobs.graph.phases import Phase, with_scoring
from jobs.graph.preparation import Prepared
from jobs.run.eta import weights
from jobs.run.graceful_stop import GracefulStop, StallWatch
from jobs.run.progress import Progress
from pipeline.asking.readers import start_reader
from pipeline.core.errors import EndedError
from pipeline.core.settings import ClusterSettings
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import DocumentWork
from pipeline.worker.executor import Summary
from pipeline.worker.heartbeat import StopSignal
from pipeline.worker.inline import execute_inline
from pipeline.worker.outcomes import DOCUMENTS_OVER_SLOTS, MakeWorker
from pipeline.worker.worker import Start

Execute = Callable[[Sequence[DocumentWork], Callable[[], None], Callable[[Summary], None]], None]
"""Executes documents; calls the second argument every second, and the third with summaries."""


class Backend(Protocol):
    """A place where workers run."""

    def num_workers(self, phase: Phase) -> int:
        """The workers that the phase begins with. Raises UsageError if too few fit."""
        ...

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        """`tags` label the metrics that workers export."""
        ...


def backend(cluster: ClusterSettings) -> Backend:
    """The backend of a cluster, joined. Raises UsageError if there is no Ray to join, ClusterError
    if a local one does not start."""
    return Inline(cluster) if cluster.name == "inline" else OnRay(cluster)


class Inline:
    """One worker in this process, without Ray."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self._cluster = cluster

    def num_workers(self, phase: Phase) -> int:
        return 1

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        in_flight = phase.slots + DOCUMENTS_OVER_SLOTS
        return partial(execute_inline, make, in_flight, 60 * self._cluster.grace_minutes)


class OnRay:
    """Ray Data, on a Ray that is started here or joined."""

    def __init__(self, cluster: ClusterSettings) -> None:
        from pipeline.cluster import join  # imported here, as ray takes a second

        self._cluster = cluster
        join(cluster.address)

    def num_workers(self, phase: Phase) -> int:
        return phase.pool(self._cluster).size()

    def executor(self, phase: Phase, make: MakeWorker, tags: dict[str, str]) -> Execute:
        from pipeline.cluster import execute_documents

        return partial(execute_documents, make, phase.pool(self._cluster), tags)


class RunExecutor:
    """Executes one launch of a run. `progress` counts its calls and units."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self._run = prepared.run
        self._folder = folder
        self._keys = sorted(prepared.keys, key=lambda key: -key.num_words)
        self._units = prepared.units
        self._phases = with_scoring(prepared.run.phases, prepared.units)
        self._launch = uuid.uuid4().hex
        pending = sum(not unit.is_done for unit in prepared.planned())
        self._publish = functools.partial(folder.write_progress, self._launch)
        self.progress = Progress(pending, self._publish, refused=folder.advisory.state)

    def execute(self, stop: GracefulStop) -> None:
        """Execute the phases, until `stop` has begun. Raises the errors of workers."""
        where = backend(self._run.config.cluster)
        stop.workers_see(StopSignal(self._folder.path, self._launch))
        with self.progress:
            for phase in self._phases:
                with suppress(EndedError):  # units still in flight are not committed
                    self._phase(phase, where, stop)
                if stop.has_begun:
                    self.progress.ended = stop.reason
                    return

    def _phase(self, phase: Phase, where: Backend, stop: GracefulStop) -> None:
        make = phase.make_worker(self._folder.path, self._launch, self._start(phase))
        minutes = self._run.config.cluster.stall_minutes
        asking = {step.id for step in phase.steps if step.prompts}
        num_workers = functools.partial(where.num_workers, phase)
        for name, documents in phase.executions(self._keys, self._units, num_workers):
            on_heartbeats = functools.partial(_take_heartbeats, stop, self.progress)
            stall = StallWatch(self._folder, self._launch, minutes, on_heartbeats)
            watch = functools.partial(_look, stop, stall)
            finished = functools.partial(_count, stall, self.progress)
            planned = weights(documents, self._keys, asking)
            self.progress.start(name, planned)
            self._publish(self.progress.state())
            tags = {"run": self._folder.path.name, "phase": name}
            try:
                where.executor(phase, make, tags)(documents, watch, finished)
            finally:
                self._folder.took(self.progress.took())
            if stop.has_begun:
                return

    def _start(self, phase: Phase) -> Start | None:
        if phase.engine is None:
            return None
        how = (self._run.family, self._run.config.reply_format)
        return functools.partial(start_reader, phase.engine, *how)


def _look(stop: GracefulStop, stall: StallWatch) -> None:
    stop.look()
    stall.look()


def _count(stall: StallWatch, progress: Progress, summary: Summary) -> None:
    stall.moved()
    progress.add(summary)


def _take_heartbeats(stop: GracefulStop, progress: Progress, workers: list[dict[str, Any]]) -> None:
    progress.alive(workers)
    stop.seen(workers)
