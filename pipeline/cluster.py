"""Ray, and nothing but Ray: Ray Data executions over documents. The only file that imports ray.

The driver sends ids and gets small summaries; workers read and write the warehouse themselves.
"""

import json
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import AccountingError, EngineError, StartError, UsageError
from pipeline.steps import Unit
from pipeline.worker import Summary, Worker

# Before ray is imported, which reads it then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else C++ warnings on the terminal
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # else worker deaths on stdout
# Else a thread of Ray Data that outlives a shutdown would start a Ray of its own.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
import ray
from ray.data import ActorPoolStrategy, DataContext

# Documents in hand beyond the requests of a worker: one of them may be about to ask.
_DOCUMENTS_OVER_SLOTS = 4
_SECONDS_TO_PLACE = 900  # the workers of an execution: a cluster may have to fetch machines
Item = tuple[str, Sequence[Unit]]
"""One document and its units in the execution, done and not."""
MakeWorker = Callable[[str], Worker]
"""A worker of that name, in its own process."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The workers of an execution; `section` is where a user sets what they need."""

    section: str
    min_workers: int
    max_workers: int | None  # null: as many as there is room for
    cpus: float
    gpus: float
    slots: int  # requests that a worker has at its engine

    def size(self) -> int:
        """The workers that this cluster has room for. Raises UsageError where it is too small."""
        _start_ray()
        cluster: Any = ray.cluster_resources()  # type: ignore[no-untyped-call]
        rooms = [self.max_workers or _MANY]
        for kind, need in (("GPU", self.gpus), ("CPU", self.cpus)):
            there = cluster.get(kind, 0)
            rooms.append(int(there / need) if need else _MANY)
            if rooms[-1] < self.min_workers:
                key = f"{self.section}.{kind.lower()}s_per_worker={need:g}"
                raise UsageError(
                    f"{key}: {self.min_workers} workers of that size need "
                    f"{self.min_workers * need:g} {kind}s, there are {there:g}; lower it"
                )
        return min(rooms)


_MANY = 1_000_000


def run_items(
    make_worker: MakeWorker,
    items: Sequence[Item],
    pool: Pool,
    watch: Callable[[], None],
) -> Iterator[Summary]:
    """A summary per item, as each is finished. `watch` is called every second meanwhile.

    Raises UsageError where nothing can be placed; StartError where an engine cannot start; at the
    end, what a document met with that is no row (AccountingError); whatever `watch` raises.
    """
    rows = [{"document_id": d, "units": pickle.dumps(list(units))} for d, units in items]
    dataset = _dataset(rows, make_worker, pool)
    failed: list[Exception] = []
    for row in _rows(dataset, watch):
        if row["error"] == StartError.__name__:
            raise StartError(row["told"])
        if row["error"]:
            failed.append(_ERRORS[row["error"]](row["told"]))
        else:
            yield Summary(**json.loads(row["told"]))
    if failed:  # the other documents are through: what they cost is kept
        raise failed[0]


def _dataset(rows: list[dict[str, Any]], make_worker: MakeWorker, pool: Pool) -> Any:
    """One document per block and as many in hand as a worker can use, so that no engine waits
    while another has documents queued up."""
    size = min(pool.size(), len(rows))
    in_hand = min(pool.slots + _DOCUMENTS_OVER_SLOTS, -(-len(rows) // size))
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Actor,
        fn_constructor_args=(make_worker,),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=pool.cpus,
        num_gpus=pool.gpus or None,
        compute=ActorPoolStrategy(
            size=size,
            max_tasks_in_flight_per_actor=in_hand,
            max_concurrent_calls_per_actor=in_hand,
        ),
    )


def _rows(dataset: Any, watch: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """What the workers return, as it comes."""
    batches: Any = iter(
        dataset.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow")
    )
    try:
        with _watched(watch):
            for batch in batches:
                yield from batch.to_pylist()
    except ray.exceptions.RayActorError as error:
        raise EngineError(f"a worker cannot be started again: {_first_line(error)}") from None
    except ray.exceptions.GetTimeoutError:
        raise EngineError(
            f"the workers did not come up within {_SECONDS_TO_PLACE} s; free some of the cluster, "
            "the same command goes on from here"
        ) from None
    finally:
        batches.close()  # ends what is still at work


@contextmanager
def _watched(watch: Callable[[], None]) -> Iterator[None]:
    """Call `watch` every second in a thread; the EngineError it raises ends what is within.

    That waits in Ray, so a signal interrupts it as Ctrl-C would (which `nohup` may have disabled).
    """
    is_over = threading.Event()
    raised: list[EngineError] = []

    def look() -> None:
        while not is_over.wait(1.0):
            try:
                watch()
            except EngineError as error:
                raised.append(error)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                return

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=look, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        if raised:
            raise raised[0] from None
        raise
    finally:
        is_over.set()
        signal.signal(signal.SIGUSR1, before)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# Ray keeps of an exception only its text, so these come back as rows and are raised again here.
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (AccountingError, StartError, UsageError)
}


class _Actor:
    """A Ray Data worker around a `Worker`; its blocks are documents."""

    def __init__(self, make_worker: MakeWorker) -> None:
        # Ray gives the next process of an actor the same id.
        self._worker = make_worker(ray.get_runtime_context().get_actor_id() or "")

    async def __call__(self, batch: Any) -> Any:
        yield pa.Table.from_pylist([await self._told(row) for row in batch.to_pylist()])

    async def _told(self, row: dict[str, Any]) -> dict[str, str]:
        units = pickle.loads(row["units"])
        try:
            summary = await self._worker.work(row["document_id"], units)
        except tuple(_ERRORS.values()) as error:
            return {"error": type(error).__name__, "told": str(error)}
        except EngineError:
            os._exit(1)  # Ray starts another process with another engine, and asks it again
        return {"error": "", "told": json.dumps(vars(summary))}


def _start_ray() -> None:
    """A Ray of our own on this machine, unless one is up in this process."""
    if not ray.is_initialized():
        with _quiet_stderr():
            ray.init(
                address="local",
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Ray Data would give up after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    # Or the first worker that is up would be given the longest documents, all of them.
    context.wait_for_min_actors_s = _SECONDS_TO_PLACE
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
