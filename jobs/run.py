"""Run or resume: load the corpus, plan every unit, execute pending ones, check the accounting.

jobs/phases.py and jobs/scoring.py decide which stages are executed together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from upath import UPath

from jobs.clusters import refuse_elsewhere
from jobs.compacting import compacted, compacting
from jobs.compatibility import grown, refuse_fewer, stored
from jobs.complaints import complaints
from jobs.deadline import PassedError
from jobs.ending import Ending
from jobs.phases import phases
from jobs.preparation import Prepared, prepare
from jobs.provenance import provenance
from jobs.run_config import RunConfig
from jobs.run_executor import RunExecutor
from jobs.step_graph import run_steps
from jobs.turns import LEASE, removals, wait_for_others
from pipeline.errors import EndedError, UsageError
from pipeline.place import is_remote, place, reaching, unwritable, write
from pipeline.retries import retry_for
from pipeline.store import connect
from pipeline.store.accounts import accounts
from pipeline.store.kept_families import keep_family
from pipeline.store.layout import check_layout, raise_layout
from pipeline.store.lease import lease
from pipeline.store.runs import RunFolder
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


@dataclass(frozen=True)
class _Launch:
    """What one launch did; `ended`: why it ended early, null if it did not."""

    ended: str | None
    calls: Mapping[str, int]
    workers: Mapping[str, Mapping[str, int]]


def run(config: RunConfig, warn: Callable[[str], None], retries: Retries | None = ONCE) -> Outcome:
    """Execute a run, from the corpus to the checked accounting; only what is not committed, and
    what `retries` asks again.

    Raises UsageError before execution where config or corpus cannot be used, AccountingError where
    rows do not match their inputs, EngineError where an engine died, StorageError where storage
    refuses, OutageError where an engine's server stays away, ClusterError where Ray does not
    start.
    """
    refuse_elsewhere(config.cluster)
    retry_for(config.cluster.storage_seconds)
    folder = RunFolder(place(config.warehouse), config.run_name())
    with _ending(config, folder) as ending:
        _refuse_unwritable(folder.warehouse)
        check_layout(folder.warehouse)
        while True:
            wait_for_others(folder, ending, warn)
            outcome = _run(config, folder, warn, ending, retries)
            if outcome is not None:
                return outcome


def _ending(config: RunConfig, folder: RunFolder) -> Ending:
    """Raises UsageError where the deadline is wrong, EndedError where that of a run that has begun
    before has passed: it is started again by a cluster that knows no exit codes."""
    try:
        return Ending(config.cluster)
    except PassedError as error:
        with reaching(folder.warehouse, "warehouse"):
            if folder.config() is None:
                raise
        raise EndedError(str(error)) from None


def _run(
    config: RunConfig,
    folder: RunFolder,
    warn: Callable[[str], None],
    ending: Ending,
    retries: Retries | None,
) -> Outcome | None:
    """Null where another command began to execute the run, or removed one, while this one prepared
    it."""
    before = folder.config()
    config = grown(config, folder)
    if config.cluster.address:  # check the cluster's size before a long load of the corpus
        for phase in phases(run_steps(config)):
            phase.pool(config.cluster).size()
    compacted(folder.warehouse, warn)  # what a run that was killed has left
    removed = removals(folder.warehouse)
    prepared = prepare(config, folder.warehouse, warn, retries=retries)
    refuse_fewer(folder, prepared.keys)
    with lease(folder.path, LEASE) as held:
        if held is None or folder.config() != before:
            return None
        has_work = _plan(prepared, folder)
        if removals(folder.warehouse) != removed:
            return None
        launch = _execute(prepared, folder, warn, ending, has_work)
        del prepared  # its units would need as much memory again beside the accounting
        return _outcome(config, folder, launch)


def _plan(prepared: Prepared, folder: RunFolder) -> bool:
    """Write what the run consists of; returns whether something of it is left to do."""
    planned = prepared.planned()
    has_work = any(not unit.is_done for unit in planned)
    raise_layout(folder.warehouse)
    folder.start(stored(prepared.config), provenance(prepared.keys), has_work)
    folder.plan(prepared.steps, planned)
    keep_family(folder.path, prepared.config.family_resolved())
    return has_work


def _execute(
    prepared: Prepared,
    folder: RunFolder,
    warn: Callable[[str], None],
    ending: Ending,
    has_work: bool,
) -> _Launch:
    executor = RunExecutor(prepared, folder)
    if has_work:
        try:
            with compacting(folder.warehouse):
                executor.execute(ending)
        finally:
            folder.all_gone()
            compacted(folder.warehouse, warn)
    prepared.shards.verify(prepared.steps)
    workers = {phase: dict(units) for phase, units in executor.progress.workers.items()}
    return _Launch(executor.ended, dict(executor.progress.calls), workers)


def _refuse_unwritable(warehouse: UPath) -> None:
    """Raise UsageError where the warehouse cannot be written to or created."""
    if blocking := unwritable(warehouse):
        raise UsageError(
            f"warehouse={warehouse}: {blocking} is not a writable folder; name another"
        )
    if is_remote(warehouse):
        with reaching(warehouse, "warehouse"):
            write(warehouse / "runs" / ".writable", b"")


def _outcome(config: RunConfig, folder: RunFolder, launch: _Launch) -> Outcome:
    """Check the accounting, and whether there are more problems than allowed."""
    with connect(folder.warehouse, folder.path.name) as connection:
        counts = accounts(connection)
        found = tuple(complaints(connection, counts, config))
    took = (launch.calls, launch.workers)
    not_done = sum(step.not_done for step in counts)
    if not_done:
        ended = launch.ended or "not done"
        why = f"{ended}: {not_done} inputs are left; run the same command to resume"
        return Outcome(folder.path.name, INCOMPLETE, (why,), *took)
    return Outcome(folder.path.name, PROBLEMS if found else COMPLETE, found, *took)
