"""One reading phase on Ray, timed from when its engines are ready, and all that they were asked."""

import functools
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.bench.chains import Made
from jobs.bench.recorder import Recorded, Sent, recorded, recording
from jobs.config import RunConfig
from jobs.loading import load_corpus
from jobs.phases import Phase, Plan, phases
from jobs.stall import StallWatch
from jobs.step_graph import run_steps
from pipeline.ask import Reader
from pipeline.cluster import run_items
from pipeline.engine import EngineSettings
from pipeline.engines import start_reader
from pipeline.place import place
from pipeline.steps import Step
from pipeline.store import Shards
from pipeline.store.runs import RunFolder
from pipeline.units import DocumentKey, plan_document

Order = Callable[[Sequence[DocumentKey]], Sequence[DocumentKey]]


@dataclass(frozen=True)
class Reading:
    """`seconds` from when the engines were ready, on average, to the last document's summary.

    On average, because that is when all the work could have been done had it been shared out
    without a gap: an engine that is up a second earlier works a second longer.
    """

    seconds: float
    workers: Sequence[Recorded]
    made: Sequence[Made]

    def sent(self) -> list[Sent]:
        """The requests of all engines, in the order they were sent."""
        return sorted((s for worker in self.workers for s in worker.sent), key=lambda s: s.begun)


def longest_first(keys: Sequence[DocumentKey]) -> Sequence[DocumentKey]:
    """The order of a run."""
    return sorted(keys, key=lambda key: -key.num_words)


def read(config: RunConfig, warehouse: Path, order: Order = longest_first) -> Reading:
    """The reading phase of `config` in a warehouse that holds nothing yet."""
    config = config.model_copy(update={"warehouse": str(warehouse)})
    placed = run_steps(config)
    steps, shards = [step for step, _ in placed], Shards(warehouse)
    keys = load_corpus(config, shards, steps[0], steps[1], _warn)
    committed = shards.committed(steps)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    phase = phases(placed)[0]
    ended = _work(config, phase, order(keys), units)
    workers = recorded(warehouse / "recorded")
    ready = sum(worker.ready for worker in workers) / len(workers)
    return Reading(ended - ready, workers, _made(shards, phase.steps, units))


def _work(config: RunConfig, phase: Phase, keys: Sequence[DocumentKey], units: Plan) -> float:
    """The time when the last document was through."""
    folder = RunFolder(place(config.warehouse), "bench")
    pool = phase.pool(config.cluster)
    launch = uuid.uuid4().hex
    assert phase.engine
    start = functools.partial(_start, config, phase.engine)
    make = phase.make_worker(folder.path, launch, start)
    ended = time.time()
    for _, items in phase.executions(keys, units, pool.size):
        watch = StallWatch(folder, launch, config.cluster.stall_minutes)
        for _ in run_items(make, items, pool, watch.look, {}):
            watch.moved()
            ended = time.time()
    return ended


async def _start(config: RunConfig, engine: EngineSettings) -> Reader:
    reader = await start_reader(engine, config.family_folder, config.reply_format)
    return recording(reader, Path(config.warehouse) / "recorded")


def _made(shards: Shards, steps: Sequence[Step], units: Plan) -> list[Made]:
    """Every call that was made, document by document, step by step."""
    by_id = {step.id: step for step in steps}
    return [
        Made(by_id[unit.step_id], call)
        for planned in units.values()
        for unit in planned
        if unit.step_id in by_id
        for call in shards.recorded(unit.step_id, unit.unit) or ()
    ]


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")
