"""Plan a launch: wholly before it is executed, or, where a new run's corpus takes longer to load,
while the documents that came first are executed."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from jobs.graph.manifest import run_manifest
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import ResolvedRun
from jobs.graph.run_plan import RunPlan
from jobs.run.compatibility import merge_with_stored_run, refuse_fewer
from jobs.run.graceful_stop import GracefulStop
from jobs.run.provenance import provenance
from pipeline.core.errors import EngineError
from pipeline.files.place import delete_folder
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import raise_layout
from pipeline.work.units import RetryPolicy

_SECONDS_BEFORE_THE_FIRST = 10.0


def prepare_launch(
    resolved: ResolvedRun,
    folder: RunFolder,
    warn: Callable[[str], None],
    retry_policy: RetryPolicy | None,
) -> Prepared:
    """The run with what it was started with before, prepared."""
    resolved = merge_with_stored_run(resolved, folder)
    cluster = resolved.config.cluster
    if cluster.address:  # check the cluster's size before a long load of the corpus
        for phase in resolved.phases:
            phase.pool(cluster).size()
    delete_folder(folder.plan_files)
    # What is compared with the whole corpus is compared before anything is executed.
    is_whole = folder.is_planned or resolved.config.predictions or cluster.name == "inline"
    seconds = math.inf if is_whole else _SECONDS_BEFORE_THE_FIRST
    finished = partial(folder.finished, resolved.steps)
    plan = RunPlan(resolved.steps, folder.plan_files, seconds, finished)
    prepared = prepare(resolved, folder.warehouse, warn, retry_policy=retry_policy, plan=plan)
    refuse_fewer(folder, plan.folder, plan.kept)
    return prepared


def start_launch(prepared: Prepared, folder: RunFolder) -> bool:
    """Write the run's manifest and planned units; returns true if any unit is pending."""
    plan = prepared.plan
    has_work = plan.num_pending > 0 or not plan.is_complete
    raise_layout(folder.warehouse)
    made_by = provenance(None) if has_work or not folder.launches() else {}
    folder.start(run_manifest(prepared.run), made_by, has_work)
    _write_planned(prepared, folder)
    if plan.is_complete:
        folder.has_read(prepared.corpus.digest())
    return has_work


def _plan_rest(prepared: Prepared, folder: RunFolder) -> None:
    for number, _ in enumerate(prepared.left, 2):
        if number.bit_count() == 1:  # ever fewer, as it grows
            _write_planned(prepared, folder)
    _write_planned(prepared, folder)


def _write_planned(prepared: Prepared, folder: RunFolder) -> None:
    """Write what is planned so far; from then on it is not deleted."""
    folder.plan(prepared.run.steps, prepared.plan.folder, prepared.plan.kept)


@contextmanager
def planned_meanwhile(
    prepared: Prepared, folder: RunFolder, stop: GracefulStop
) -> Iterator[Callable[[], None]]:
    """Plan what is left, in a thread, while the `with` block executes; once `stop` has begun, or if
    the block ends first, the rest stays unplanned. Yields a function to be called meanwhile, which
    raises once planning has failed; its error is then raised from the block."""
    if prepared.plan.is_complete:
        yield lambda: None
        return

    with ThreadPoolExecutor(1) as thread:
        planning = thread.submit(_plan_rest, prepared, folder)

        def look() -> None:
            if stop.has_begun:
                prepared.plan.stop()
            if planning.done() and planning.exception():
                raise EngineError("planning has failed")  # whatever its error: the block ends

        try:
            yield look
        finally:
            prepared.plan.stop()
            if planning.done():
                planning.result()  # its own error
    planning.result()
    if prepared.plan.is_complete:
        folder.has_read(prepared.corpus.digest())
