"""Execute the first phase of a run on Ray, timed and with every request recorded."""

import functools
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.dependencies import Made
from benchmarks.recorder import (
    Moment,
    Recorded,
    Sent,
    read_records,
    recorded_worker,
    start_recorded,
)
from jobs.config.run_config import RunConfig
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import resolve
from jobs.run.graceful_stop import GracefulStop
from pipeline.cluster import execute_documents, join
from pipeline.core.engine import EngineSettings
from pipeline.core.errors import CommandError, UsageError
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.progress import Summary

Order = Callable[[Sequence[DocumentWork]], Sequence[DocumentWork]]


@dataclass(frozen=True)
class Reading:
    """The measurements of one phase.

    `driver`: moments of the driver's process, one per second. The first is the start of the
    execution, the last two are the last document's summary and the end of the execution.
    """

    engine: EngineSettings
    driver: Sequence[Moment]
    workers: Sequence[Recorded]
    made: Sequence[Made]

    @property
    def ready(self) -> float:
        """The clock when the engines were ready, averaged over workers.

        With a perfect schedule, an engine that is ready a second earlier works a second longer:
        the average start and a common end give the same total of engine seconds.
        """
        return sum(worker.ready.clock for worker in self.workers) / len(self.workers)

    @property
    def seconds(self) -> float:
        """Wall seconds from `ready` to the last document's summary."""
        return self.driver[-2].clock - self.ready

    @property
    def cpu(self) -> float:
        """CPU seconds of driver and workers in that time, without those of the recorder."""
        before = [moment for moment in self.driver if moment.clock <= self.ready]
        of_workers = (worker.ended.cpu - worker.ready.cpu for worker in self.workers)
        return self.driver[-2].cpu - before[-1].cpu + sum(of_workers) - self.recorder_cpu

    @property
    def recorder_cpu(self) -> float:
        return sum(worker.recorder_cpu for worker in self.workers)

    @property
    def all_seconds(self) -> float:
        """Wall seconds of the whole execution, including the start of workers and engines."""
        return self.driver[-1].clock - self.driver[0].clock

    @property
    def all_cpu(self) -> float:
        """CPU seconds of the driver over the whole execution, and of the workers since start."""
        return self.driver[-1].cpu - self.driver[0].cpu + sum(w.ended.cpu for w in self.workers)

    def sent(self) -> list[Sent]:
        """The requests of all engines, in the order they were sent."""
        return sorted((s for worker in self.workers for s in worker.sent), key=lambda s: s.begun)


def as_planned(documents: Sequence[DocumentWork]) -> Sequence[DocumentWork]:
    """The order in which a run processes documents: the longest first."""
    return documents


def read(config: RunConfig, warehouse: Path, order: Order = as_planned) -> Reading:
    """Execute the first phase of `config` in an empty warehouse.

    Raises UsageError where the phase has no engine, or the cluster is not Ray.
    """
    if config.cluster.name == "inline":
        raise UsageError("cluster=inline: what is measured here is Ray's; leave it out")
    prepared = prepare(resolve(config), warehouse, _warn)
    phase = prepared.run.phases[0]
    if phase.engine is None:
        raise UsageError(f"methods={config.methods}: need no engine; there is nothing to measure")
    join(config.cluster.address)
    driver = _executed(prepared, phase, phase.engine, order)
    workers = read_records(warehouse / "recorded")
    return Reading(phase.engine, driver, workers, _made(prepared, phase))


def _executed(
    prepared: Prepared, phase: Phase, engine: EngineSettings, order: Order
) -> list[Moment]:
    """The `driver` of a Reading."""
    config, warehouse = prepared.run.config, prepared.shards.warehouse
    folder, kept = RunFolder(warehouse, "bench"), Path(str(warehouse)) / "recorded"
    launch, pool = uuid.uuid4().hex, phase.pool(config.cluster)
    how = (prepared.run.family, config.is_constrained(engine))
    start = functools.partial(start_recorded, kept, engine, *how)
    make = functools.partial(recorded_worker, kept, phase.make_worker(folder.path, launch, start))
    driver = [Moment.now()]
    done = [driver[0]]
    for _, work in phase.executions(prepared.plan, pool.size):
        stop = GracefulStop(config.cluster)
        should_stop = functools.partial(_look, stop, driver)
        ordered = work_on(order([*work.documents]))
        with stop.watch(folder, launch):
            count = functools.partial(_count, stop, done)
            execute_documents(make, pool, ordered, should_stop, count)
        if stop.failure:
            raise stop.failure
    return [*driver, done[-1], Moment.now()]


def _count(stop: GracefulStop, done: list[Moment], outcome: Summary | CommandError) -> None:
    stop.done(outcome)
    done.append(Moment.now())


def _look(stop: GracefulStop, driver: list[Moment]) -> CommandError | None:
    driver.append(Moment.now())
    return stop.should_stop()


def _made(prepared: Prepared, phase: Phase) -> list[Made]:
    by_id = {step.id: step for step in phase.steps}
    return [
        Made(by_id[unit.step_id], call)
        for document in prepared.plan.documents(by_id)
        for unit in document.units
        for call in prepared.shards.recorded(unit.step_id, unit.unit, unit.attempt) or ()
    ]


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")
