"""Run or resume: load the corpus, plan every unit, execute pending ones, check the accounting.

jobs/phases.py and jobs/scoring.py decide which stages are executed together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from upath import UPath

from jobs.clusters import refuse_elsewhere
from jobs.compatibility import grown, refuse_fewer, stored
from jobs.config import RunConfig
from jobs.ending import Ending
from jobs.phases import phases
from jobs.preparation import prepare
from jobs.provenance import provenance
from jobs.run_executor import RunExecutor
from jobs.step_graph import run_steps
from pipeline.errors import UsageError
from pipeline.journal import collect
from pipeline.place import is_remote, place, reaching, unwritable, write
from pipeline.store import connect
from pipeline.store.accounts import accounts
from pipeline.store.runs import RunFolder
from pipeline.store.views import query
from pipeline.units import ONCE, Retries

COMPLETE, PROBLEMS, INCOMPLETE = 0, 3, 4


@dataclass(frozen=True)
class Outcome:
    """The result of a run; `complaints`: why the exit code is not 0."""

    run: str
    exit_code: int
    complaints: tuple[str, ...]
    calls: Mapping[str, int]  # model calls of this launch, by step_id
    workers: Mapping[str, Mapping[str, int]]  # units committed in this launch, by phase and worker


def run(config: RunConfig, warn: Callable[[str], None], retries: Retries = ONCE) -> Outcome:
    """Execute a run, from the corpus to the checked accounting; only what is not committed, and
    what `retries` asks again.

    Raises UsageError before execution where config or corpus cannot be used, AccountingError where
    rows do not match their inputs, EngineError where an engine died, OutageError where its server
    stays away.
    """
    refuse_elsewhere(config.cluster)
    with Ending(config.cluster) as ending:
        return _run(config, warn, ending, retries)


def _run(
    config: RunConfig, warn: Callable[[str], None], ending: Ending, retries: Retries
) -> Outcome:
    folder = RunFolder(place(config.warehouse), config.run_name())
    _refuse_unwritable(folder.warehouse)
    config = grown(config, folder)
    if config.cluster.address:  # check the cluster's size before a long load of the corpus
        for phase in phases(run_steps(config)):
            phase.pool(config.cluster).size()
    prepared = prepare(config, folder.warehouse, warn, retries=retries)
    refuse_fewer(folder, prepared.keys)
    collect(folder.warehouse, prepared.committed)
    planned = prepared.planned()
    has_work = any(not unit.is_done for unit in planned)
    folder.start(stored(config), provenance(prepared.keys), has_work)
    folder.plan(prepared.steps, planned)
    executor = RunExecutor(prepared, folder)
    if has_work:
        try:
            executor.execute(ending)
        finally:
            folder.all_gone()
    prepared.shards.verify(prepared.steps)
    return _outcome(config, folder, executor)


def _refuse_unwritable(warehouse: UPath) -> None:
    """Raise UsageError where the warehouse cannot be written to or created."""
    if blocking := unwritable(warehouse):
        raise UsageError(
            f"warehouse={warehouse}: {blocking} is not a writable folder; name another"
        )
    if is_remote(warehouse):
        with reaching(warehouse, "warehouse"):
            write(warehouse / "runs" / ".writable", b"")


def _outcome(config: RunConfig, folder: RunFolder, executor: RunExecutor) -> Outcome:
    """Check the accounting, and whether there are more problems than allowed."""
    with connect(folder.warehouse, folder.path.name) as connection:
        counts = accounts(connection)
        fallbacks = query(connection, "select * from fallbacks where asked > 0")
    complaints = [
        f"{step.label}: {step.problem} of {step.inputs} inputs have a problem "
        f"(max_problem_rate={config.max_problem_rate})"
        for step in counts
        if step.problem > config.max_problem_rate * step.inputs
    ]
    complaints += [
        f"{row['stage']}: {100 * row['fell_back'] / row['asked']:.1f}% {row['what']} "
        f"(max_fallback_rate={config.max_fallback_rate})"
        for row in fallbacks
        if row["fell_back"] > config.max_fallback_rate * row["asked"]
    ]
    workers = {phase: dict(units) for phase, units in executor.progress.workers.items()}
    took = (dict(executor.progress.calls), workers)
    not_done = sum(step.not_done for step in counts)
    if not_done:
        ended = executor.ended or "not done"
        why = f"{ended}: {not_done} inputs are left; run the same command to resume"
        return Outcome(folder.path.name, INCOMPLETE, (why,), *took)
    code = PROBLEMS if complaints else COMPLETE
    return Outcome(folder.path.name, code, tuple(complaints), *took)
