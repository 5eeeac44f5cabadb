"""Ray, and nothing but Ray: one Ray Data execution a phase. The only file that imports ray.

The driver sends ids and gets small summaries; workers read and write the warehouse themselves.
"""

import json
import logging
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import AccountingError, EngineError, UsageError
from pipeline.settings import ClusterSettings
from pipeline.steps import Unit
from pipeline.worker import Summary, Worker

# Before ray is imported, which reads it then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else C++ warnings on the terminal
import ray
from ray.data import ActorPoolStrategy, DataContext
from ray.util.annotations import RayDeprecationWarning

# A document whose worker dies is tried again so often; without a limit Ray would never stop.
_RETRIES = 3
Item = tuple[str, Sequence[Unit]]
"""One document and its units in the phase, done and not."""


def run_phase(
    make_worker: Callable[[], Worker], items: Sequence[Item], cluster: ClusterSettings
) -> Iterator[Summary]:
    """A summary per document, as each is finished. Raises, at the end, what a document met
    with that is no row (EngineError, AccountingError); UsageError where nothing can be placed.

    One document per block and as many calls in flight as a worker may hold documents, so that no
    engine waits while another has documents queued up.
    """
    _start(cluster)
    rows = [{"document_id": d, "units": pickle.dumps(list(units))} for d, units in items]
    failed: list[Exception] = []
    for row in _rows(_dataset(rows, make_worker, cluster)):
        if row["error"]:
            failed.append(_ERRORS[row["error"]](row["told"]))
        else:
            yield Summary(**json.loads(row["told"]))
    if failed:  # the other documents are through: what they cost is kept
        raise failed[0]


def _dataset(
    rows: list[dict[str, Any]], make_worker: Callable[[], Worker], cluster: ClusterSettings
) -> Any:
    with warnings.catch_warnings():
        # Ray will drop free-form actor options in 2.64, where this limit needs another place.
        warnings.simplefilter("ignore", RayDeprecationWarning)
        return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _Actor,
            fn_constructor_args=(make_worker,),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=cluster.cpus_per_worker,
            max_task_retries=_RETRIES,
            compute=ActorPoolStrategy(
                size=min(cluster.workers or os.cpu_count() or 1, len(rows)),
                max_tasks_in_flight_per_actor=cluster.documents_per_worker,
                max_concurrent_calls_per_actor=cluster.documents_per_worker,
            ),
        )


def _rows(dataset: Any) -> Iterator[dict[str, Any]]:
    """What the workers return, as it comes. Raises EngineError where one keeps dying."""
    try:
        for batch in dataset.iter_batches(
            batch_size=None, prefetch_batches=0, batch_format="pyarrow"
        ):
            yield from batch.to_pylist()
    except ray.exceptions.RayActorError:
        raise EngineError(
            "a worker process died several times over (out of memory?); what is committed stays, "
            "the same command goes on from there"
        ) from None


# Ray keeps of an exception only its text, so these come back as rows and are raised again here.
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (AccountingError, EngineError, UsageError)
}


class _Actor:
    """A Ray Data worker around a `Worker`; its blocks are documents."""

    def __init__(self, make_worker: Callable[[], Worker]) -> None:
        self._worker = make_worker()

    async def __call__(self, batch: Any) -> Any:
        yield pa.Table.from_pylist([await self._told(row) for row in batch.to_pylist()])

    async def _told(self, row: dict[str, Any]) -> dict[str, str]:
        units = pickle.loads(row["units"])
        try:
            summary = await self._worker.work(row["document_id"], units)
        except tuple(_ERRORS.values()) as error:
            return {"error": type(error).__name__, "told": str(error)}
        return {"error": "", "told": json.dumps(vars(summary))}


def _start(cluster: ClusterSettings) -> None:
    """A Ray of our own on this machine, unless one is up in this process."""
    if not ray.is_initialized():
        with _quiet_stderr():
            ray.init(
                address="local",
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
    resources: Any = ray.cluster_resources  # untyped
    cpus = resources().get("CPU", 0)
    if cluster.cpus_per_worker > cpus:
        wanted = f"cluster.cpus_per_worker={cluster.cpus_per_worker:g}"
        raise UsageError(f"{wanted}: this machine has {cpus:g} CPUs; lower it")
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Ray Data would give up after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is raised here


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Ray's C++ announces its log level on file descriptor 2, past Python's reach."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
