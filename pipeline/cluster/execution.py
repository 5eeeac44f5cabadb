"""A Ray Data execution over documents, one document per block."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext

from pipeline.cluster.actor import Actor
from pipeline.cluster.joining import first_line
from pipeline.cluster.pool import Pool
from pipeline.cluster.shadowing import refuse_shadowed_workers
from pipeline.core.errors import EngineError, UsageError
from pipeline.core.plugins import pickle_with_plugins
from pipeline.work.units import DocumentWork
from pipeline.worker.executor import Summary
from pipeline.worker.outcomes import DOCUMENTS_OVER_SLOTS, MakeWorker, take
from pipeline.worker.watching import Failures, watch_in_thread


def execute_documents(
    make_worker: MakeWorker,
    pool: Pool,
    tags: Mapping[str, str],
    documents: Sequence[DocumentWork],
    watch: Callable[[], None],
    finished: Callable[[Summary], None],
) -> None:
    """Execute the documents; `finished` is called with a summary of each, in the order they finish,
    and `watch` every second meanwhile. `tags` label the metrics that workers export through Ray.

    Raises UsageError if no worker can be placed or one does not see the warehouse; StartError if an
    engine cannot start; OutageError if its server stays unreachable; EngineError if a worker cannot
    be restarted; whatever `watch` raises, except a filesystem's errors, after which it is called
    again. A document's AccountingError is raised once all other documents are finished, a
    StorageError once those in flight are, or `cluster.grace_minutes` later.
    """
    rows = [{"document_id": d, "units": pickle.dumps(list(units))} for d, units in documents]
    failures = Failures(60 * pool.cluster.grace_minutes)
    batches: Any = iter(
        _dataset(rows, make_worker, tags, pool).iter_batches(
            batch_size=None, prefetch_batches=0, batch_format="pyarrow"
        )
    )
    try:
        with _rays_errors(pool), watch_in_thread(watch, failures):
            for batch in batches:
                for row in batch.to_pylist():
                    take(row, finished, failures)
    finally:
        batches.close()  # stops documents that are still in flight
    if failures.first:  # raised last, so that the other documents are committed
        raise failures.first


@contextmanager
def _rays_errors(pool: Pool) -> Iterator[None]:
    """Turn Ray's errors about the pool's workers in the `with` block into ours."""
    try:
        yield
    except ray.exceptions.RayActorError as error:
        refuse_shadowed_workers(error)
        raise EngineError(f"a worker cannot be restarted: {first_line(error)}") from None
    except ray.exceptions.GetTimeoutError:
        minutes = pool.cluster.wait_minutes
        raise UsageError(
            f"the cluster could not place {pool.section}'s workers within cluster.wait_minutes="
            f"{minutes:g}; free resources or raise it, then run the same command to resume"
        ) from None


def _dataset(
    rows: list[dict[str, Any]], make_worker: MakeWorker, tags: Mapping[str, str], pool: Pool
) -> Any:
    """One document per block, and as many in flight as a worker can use: no engine idles while
    documents queue at another. The pool grows onto machines that join later."""
    size = min(pool.size(), len(rows))
    most = min(pool.most(size), len(rows))
    in_flight = min(pool.slots + DOCUMENTS_OVER_SLOTS, -(-len(rows) // most))
    # Wait for all workers, or the first one up would be given all of the longest documents.
    DataContext.get_current().wait_for_min_actors_s = int(60 * pool.cluster.wait_minutes)
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Actor,
        fn_constructor_args=(pickle_with_plugins(make_worker), tags, pool.cluster.storage_seconds),
        batch_size=1,  # the whole block; Ray Data requires a number if num_gpus is set
        batch_format="pyarrow",
        num_cpus=pool.cpus,
        num_gpus=pool.gpus or None,
        compute=ActorPoolStrategy(
            min_size=size,
            initial_size=size,
            max_size=max(size, min(pool.max_workers or len(rows), len(rows))),
            max_tasks_in_flight_per_actor=in_flight,
            max_concurrent_calls_per_actor=in_flight,
        ),
    )
