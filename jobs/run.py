"""Run or resume: load the corpus, plan every unit, do what is not done, check the accounts.

Reading, rating by other models than the reader, scoring: jobs/phases.py says in which executions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from upath import UPath

from jobs.clusters import refuse_elsewhere
from jobs.config import RunConfig
from jobs.ending import Ending
from jobs.grow import grown, refuse_fewer, stored
from jobs.load import load_corpus
from jobs.phases import phases
from jobs.provenance import provenance
from jobs.steps import run_steps
from jobs.work import Work
from pipeline.errors import UsageError
from pipeline.place import is_remote, place, reaching, unwritable, write
from pipeline.steps import plan_document
from pipeline.store import Shards, accounts, connect, fallback_rate
from pipeline.store.runs import RunFolder

COMPLETE, PROBLEMS, INCOMPLETE = 0, 3, 4


@dataclass(frozen=True)
class Outcome:
    """What a run came to; `complaints` say why the exit code is not 0."""

    run: str
    exit_code: int
    complaints: tuple[str, ...]
    calls: Mapping[str, int]  # model calls this time, by step_id; none where all stood already
    workers: Mapping[str, Mapping[str, int]]  # units each worker committed this time, by phase


def run(config: RunConfig, warn: Callable[[str], None]) -> Outcome:
    """Everything from the corpus to the checked accounts. Resumes what stands already.

    Raises UsageError before any work where config or corpus are of no use, AccountingError where
    the rows do not add up, EngineError where an engine died.
    """
    refuse_elsewhere(config.cluster)
    with Ending(config.cluster) as ending:
        return _run(config, warn, ending)


def _run(config: RunConfig, warn: Callable[[str], None], ending: Ending) -> Outcome:
    folder = RunFolder(place(config.warehouse), config.run_name())
    _refuse_unwritable(folder.warehouse)
    config = grown(config, folder)
    placed = run_steps(config)
    if config.cluster.address:  # before an hour of loading
        for phase in phases(placed):
            phase.pool(config.cluster).size()
    steps = [step for step, _ in placed]
    shards = Shards(folder.warehouse)
    keys = load_corpus(config, shards, steps[0], steps[1], warn)
    refuse_fewer(folder, keys)
    committed = shards.committed(steps)
    units = {
        key.document_id: plan_document(steps, key, committed, config.questions_per_unit)
        for key in keys
    }
    has_work = any(not unit.is_done for planned in units.values() for unit in planned)
    folder.start(stored(config), provenance(keys), has_work)
    folder.plan(steps, (unit for planned in units.values() for unit in planned))
    work = Work(config, folder, keys, units)
    if has_work:
        try:
            work.through(phases(placed), ending)
        finally:
            folder.all_gone()
    shards.verify(steps)
    return _outcome(config, folder, work)


def _refuse_unwritable(warehouse: UPath) -> None:
    """Raise UsageError where the warehouse can be neither written to nor made."""
    if there := unwritable(warehouse):
        raise UsageError(f"warehouse={warehouse}: {there} is no folder to write to; name another")
    if is_remote(warehouse):
        with reaching(warehouse, "warehouse"):
            write(warehouse / "runs" / ".writable", b"")


def _outcome(config: RunConfig, folder: RunFolder, work: Work) -> Outcome:
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
    workers = {phase: dict(units) for phase, units in work.progress.workers.items()}
    took = (dict(work.progress.calls), workers)
    not_done = sum(step.not_done for step in counts)
    if not_done:
        why = f"{work.ended or 'not done'}: {not_done} inputs are left; run the same command again"
        return Outcome(folder.path.name, INCOMPLETE, (why,), *took)
    code = PROBLEMS if complaints else COMPLETE
    return Outcome(folder.path.name, code, tuple(complaints), *took)
