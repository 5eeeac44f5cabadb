"""Run or resume: load the corpus, plan every unit, do what is not done, check the accounts.

Three phases, each one Ray Data execution: reading, rating (one a rater), scoring.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.config import RunConfig
from jobs.grow import grown, refuse_fewer, stored
from jobs.load import load_corpus
from jobs.progress import Progress
from jobs.provenance import provenance
from jobs.steps import run_steps
from pipeline.cluster import Item, run_phase
from pipeline.errors import UsageError
from pipeline.steps import DocumentKey, Step, Unit, plan_document
from pipeline.store import Shards, accounts, connect, fallback_rate
from pipeline.store.runs import RunFolder
from pipeline.worker import Worker
from stages.engines import EngineSettings, make_reader

COMPLETE, PROBLEMS, INCOMPLETE = 0, 3, 4


@dataclass(frozen=True)
class Outcome:
    """What a run came to; `complaints` say why the exit code is not 0."""

    run: str
    exit_code: int
    complaints: tuple[str, ...]
    calls: Mapping[str, int]  # model calls this time, by step_id; none where all stood already
    workers: Mapping[str, Mapping[str, int]]  # units each worker committed this time, by phase


@dataclass(frozen=True)
class Phase:
    """Steps that one engine works through in one Ray Data execution."""

    name: str
    engine: EngineSettings | None
    loading: tuple[Step, ...]  # documents and questions, which every phase reads
    steps: tuple[Step, ...]

    def with_upstream(self) -> dict[str, Step]:
        """The steps and all they read directly, by id."""
        upstream = [up for step in self.steps for up in step.upstream]
        return {step.id: step for step in (*self.loading, *upstream, *self.steps)}


def run(config: RunConfig, warn: Callable[[str], None]) -> Outcome:
    """Everything from the corpus to the checked accounts. Resumes what stands already.

    Raises UsageError before any work where config or corpus are of no use, AccountingError where
    the rows do not add up, EngineError where an engine died.
    """
    folder = RunFolder(Path(config.warehouse), config.run_name())
    _refuse_unwritable(folder.warehouse)
    config = grown(config, folder)
    placed = run_steps(config)
    steps = [step for step, _ in placed]
    shards = Shards(folder.warehouse)
    keys = load_corpus(config, shards, steps[0], steps[1], warn)
    refuse_fewer(folder, keys)
    committed = shards.committed(steps)
    units = {key.document_id: plan_document(steps, key, committed) for key in keys}
    has_work = any(not unit.is_done for planned in units.values() for unit in planned)
    folder.start(stored(config), provenance(keys), has_work)
    folder.plan(steps, (unit for planned in units.values() for unit in planned))
    try:
        done = _work(config, phases(placed), keys, units)
    finally:
        folder.all_gone()
    shards.verify(steps)
    return _outcome(config, folder, done)


def _refuse_unwritable(warehouse: Path) -> None:
    """Raise UsageError where the warehouse can be neither written to nor made."""
    if ":/" in str(warehouse):
        raise UsageError(f"warehouse={warehouse}: only folders of this machine so far; name one")
    place = next(path for path in (warehouse, *warehouse.parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise UsageError(f"warehouse={warehouse}: {place} is no folder to write to; name another")


def phases(placed: Sequence[tuple[Step, EngineSettings | None]]) -> list[Phase]:
    """Reading, one rating phase per rater, scoring. The two loading steps are in none."""
    found: dict[tuple[str, str], Phase] = {}
    loading = tuple(step for step, _ in placed if step.stage is None)
    for step, engine in placed:
        if step.stage is None:
            continue
        key = (step.stage.phase, repr(engine))
        phase = found.setdefault(key, Phase(step.stage.phase, engine, loading, ()))
        found[key] = replace(phase, steps=(*phase.steps, step))
    order = ("reading", "rating", "scoring")
    return sorted(found.values(), key=lambda phase: order.index(phase.name))


def _work(
    config: RunConfig,
    todo: Sequence[Phase],
    keys: Sequence[DocumentKey],
    units: Mapping[str, Sequence[Unit]],
) -> Progress:
    """Work through the phases; what that took."""
    pending = sum(not unit.is_done for planned in units.values() for unit in planned)
    longest_first = sorted(keys, key=lambda key: -key.num_words)
    with Progress(pending) as progress:
        for phase in todo:
            items = list(_items(phase, longest_first, units))
            if items:
                make = functools.partial(_make_worker, config, phase)
                progress.start(phase.name, len(items))
                for summary in run_phase(make, items, config.cluster):
                    progress.add(summary)
    return progress


def _items(
    phase: Phase, keys: Sequence[DocumentKey], units: Mapping[str, Sequence[Unit]]
) -> Iterator[Item]:
    """The documents with something to do in the phase. What earlier phases did is done by now."""
    own = {step.id for step in phase.steps}
    read = phase.with_upstream()
    for key in keys:
        planned = [unit for unit in units[key.document_id] if unit.step_id in read]
        if any(unit.step_id in own and not unit.is_done for unit in planned):
            yield (
                key.document_id,
                [unit if unit.step_id in own else replace(unit, is_done=True) for unit in planned],
            )


def _make_worker(config: RunConfig, phase: Phase) -> Worker:
    reader = make_reader(phase.engine, config.family_folder) if phase.engine else None
    warehouse, name = Path(config.warehouse), config.run_name()
    return Worker(warehouse, name, list(phase.with_upstream().values()), reader)


def _outcome(config: RunConfig, folder: RunFolder, done: Progress) -> Outcome:
    """The accounts checked, and whether there are more problems than allowed."""
    with connect(folder.warehouse, folder.path.name) as connection:
        counts = accounts(connection)
        fallbacks = fallback_rate(connection)
    complaints = [
        f"{step.label}: {step.problem} of {step.inputs} inputs have a problem "
        f"(max_problem_rate={config.max_problem_rate})"
        for step in counts
        if step.problem > config.max_problem_rate * step.inputs
    ]
    if fallbacks is not None and fallbacks > config.max_fallback_rate:
        complaints.append(
            f"paginate: {100 * fallbacks:.1f}% of the pages asked for fell back to the last label "
            f"(max_fallback_rate={config.max_fallback_rate})"
        )
    workers = {phase: dict(units) for phase, units in done.workers.items()}
    took = (done.total.calls, workers)
    not_done = sum(step.not_done for step in counts)
    if not_done:
        why = f"{not_done} inputs are not done; run the same command again"
        return Outcome(folder.path.name, INCOMPLETE, (why,), *took)
    code = PROBLEMS if complaints else COMPLETE
    return Outcome(folder.path.name, code, tuple(complaints), *took)
