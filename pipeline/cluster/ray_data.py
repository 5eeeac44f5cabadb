"""A Ray Data execution over documents: the size of its worker pool, the blocks of documents that it
deals to workers, and the actor that is a worker's process.

One task reads the blocks from the plan as workers take them, so neither Ray nor the driver holds
the plan. Ray deals each block to the worker that has the fewest.
"""

import asyncio
import gc
import os
import pickle
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from ray._private.state import state
from ray._private.worker import global_worker
from ray.data import ActorPoolStrategy, DataContext
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from pipeline.cluster.joining import first_line, is_lost, join, nodes
from pipeline.core.errors import CommandError, EngineError, UsageError
from pipeline.core.registry import pickle_with_plugins, unpickle_with_plugins
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage import retry_for
from pipeline.work.units import DocumentWork, Work
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import (
    DOCUMENTS_OVER_SLOTS,
    Done,
    MakeWorker,
    Outcome,
    ShouldStop,
    ended_by,
    outcome,
    take,
)

_MANY = 1_000_000
_WORDS = 20_000  # of a block: seconds of an engine, beside which Ray's milliseconds do not count
_PER_WORKER = 32  # blocks or more, so that workers end at about the same time
# Blocks by which the task is ahead of the driver. With Ray's 2 it hands over 60 a second, with 32
# some 190, as many as if all blocks were in Ray before.
_AHEAD = 32
_NOT_IMPORTED = re.compile(r"No module named '(?:gistmill|pipeline|stages|jobs)\b[^']*'")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colors
_MOST_RESTARTS = 10  # of a worker that was never up between them
_OUTPUT = "worker-*.err"
_OF_RAY = (":job_id:", ":actor_name:", ":task_name:")  # lines that Ray writes there itself


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The resources of a worker pool: `cpus` and `gpus` are per worker; `section` is the config
    section that sets them."""

    section: str
    min_workers: int
    max_workers: int | None  # None: as many as the cluster fits
    cpus: float | None  # None: all of a machine
    gpus: float
    slots: int  # concurrent requests of a worker at its engine
    cluster: ClusterSettings

    def size(self) -> int:
        """The initial number of workers: as many as fit into the cluster, which is joined. Raises
        UsageError if fewer than `min_workers` fit and the cluster does not autoscale."""
        join(self.cluster.address)
        needs, machines = self.needs, nodes()
        fitting = sum(
            min(
                int(machine.get(kind, 0.0) / need + 1e-9) if need else _MANY
                for kind, need in needs.items()
            )
            for machine in machines
        )
        if fitting >= self.min_workers or self.cluster.autoscales:
            return min(self.max_workers or _MANY, max(fitting, self.min_workers))
        there = {kind: sum(machine.get(kind, 0.0) for machine in machines) for kind in needs}
        raise UsageError(
            f"{self.section}.gpus_per_worker={needs['GPU']:g}, cpus_per_worker={needs['CPU']:g}: "
            f"{fitting} workers of that size fit on {len(machines)} machines with {there['GPU']:g} "
            f"GPUs and {there['CPU']:g} CPUs in all, {self.min_workers} are needed; lower one"
        )

    @property
    def needs(self) -> dict[str, float]:
        """The resources of a worker; for all CPUs of a machine, the largest machine's. Call `join`
        first."""
        cpus = self.cpus
        if cpus is None:
            cpus = max((node.get("CPU", 0.0) for node in nodes()), default=0.0) or 1.0
        return {"GPU": self.gpus, "CPU": cpus}


def words_per_block(work: Work, num_workers: int) -> float:
    """The most words of a block with several documents."""
    return min(_WORDS, work.words / (num_workers * _PER_WORKER))


def blocks(documents: Iterable[DocumentWork], most_words: float) -> Iterator[list[DocumentWork]]:
    """Group the documents, which come longest first: a long one by itself, short ones together, up
    to `most_words` words."""
    block: list[DocumentWork] = []
    room = most_words
    for document in documents:
        if block and document.words > room:
            yield block
            block, room = [], most_words
        block.append(document)
        room -= document.words
    if block:
        yield block


@dataclass
class PlanSource(Datasource):
    """Blocks of up to `words` words of the documents, each block a row."""

    documents: Iterable[DocumentWork]
    words: float

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[ReadTask]:
        unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(self._rows, unknown)]

    def _rows(self) -> Iterator[Any]:
        for block in blocks(self.documents, self.words):
            yield pa.table({"documents": [pickle.dumps(block)]})


class Actor:
    """The Ray Data UDF around a `Worker`, in its own process. An input row is a block, a pickled
    list of DocumentWork; the output row has their Outcomes."""

    def __init__(self, make: bytes, storage_seconds: float, in_flight: int) -> None:
        """`make`: a MakeWorker of `pickle_with_plugins`; `in_flight`: the most documents."""
        retry_for(storage_seconds)
        make_worker: MakeWorker = unpickle_with_plugins(make)
        context = ray.get_runtime_context()
        # Ray keeps the id when it restarts the actor in another process.
        actor = context.get_actor_id() or ""
        self._worker = make_worker(Placement(actor, context.get_node_id(), is_lost))
        self._room = asyncio.Semaphore(in_flight)
        # What is imported stays, so it is not searched for garbage: the process would do it when it
        # ends, for a quarter of the CPU time that it takes to start and end.
        gc.freeze()

    async def __call__(self, batch: Any) -> Any:
        documents = chain.from_iterable(map(pickle.loads, batch["documents"].to_pylist()))
        results = await asyncio.gather(*map(self._result, documents))
        yield pa.table({"outcomes": [pickle.dumps(results)]})

    async def _result(self, document: DocumentWork) -> Outcome:
        try:
            async with self._room:  # first come, first served: the longest were dealt first
                return await outcome(self._worker, document)
        except EngineError:
            os._exit(1)  # Ray restarts the actor, with a new engine, and retries its blocks


def execute_documents(
    make_worker: MakeWorker,
    pool: Pool,
    work: Work,
    should_stop: ShouldStop,
    done: Done,
) -> None:
    """Execute the documents of `work`. `done` is called for each, in the order their blocks finish,
    with its summary, AccountingError or StorageError.

    Raises UsageError if no worker can be placed or one does not see the warehouse; StartError if an
    engine cannot start; OutageError if its server stays unreachable; EngineError if a worker cannot
    be restarted; and the error that `should_stop` returns.
    """
    batches: Any = iter(
        _dataset(work, make_worker, pool).iter_batches(
            batch_size=None, prefetch_batches=0, batch_format="pyarrow"
        )
    )
    restarts: dict[str, int] = {}
    try:
        with _rays_errors(pool), ended_by(lambda: _dying_worker(restarts) or should_stop()):
            for batch in batches:
                for outcomes in batch["outcomes"].to_pylist():
                    for result in pickle.loads(outcomes):
                        take(result, done)
    finally:
        batches.close()  # stops documents that are still in flight


def _dying_worker(restarts: dict[str, int]) -> EngineError | None:
    """The error for a worker that dies again and again before it has started, if any: Ray would
    restart it for ever. `restarts`: of each worker that was not up at the last call, before it went
    down."""
    table: Any = state.actor_table(None, global_worker.current_job_id, "RESTARTING")
    now = {worker: row["NumRestarts"] for worker, row in table.items()}
    before = {worker: restarts.get(worker, number) for worker, number in now.items()}
    restarts.clear()
    restarts.update(before)
    if all(number - before[worker] < _MOST_RESTARTS for worker, number in now.items()):
        return None
    node: Any = global_worker.node
    logs = Path(node.get_logs_dir_path())
    files = sorted(logs.glob(_OUTPUT), key=lambda file: file.stat().st_mtime, reverse=True)
    lines = (line.strip() for file in files for line in reversed(file.read_text().splitlines()))
    last = next((f" ({line})" for line in lines if line and not line.startswith(_OF_RAY)), "")
    return EngineError(
        f"a worker died {_MOST_RESTARTS} times as it started{last}; Ray's logs of it are "
        f"{logs / _OUTPUT}"
    )


@contextmanager
def _rays_errors(pool: Pool) -> Iterator[None]:
    try:
        yield
    except ray.exceptions.RayTaskError as error:  # of the task that reads the plan
        raise (error.cause if isinstance(error.cause, CommandError) else error) from None
    except ray.exceptions.RayActorError as error:
        # The error that the worker's process raised, or else the first line of Ray's error.
        text = _ESCAPES.sub("", str(error))
        *_, last_frame = re.split(r"^  File ", text, flags=re.MULTILINE)
        raised = (line for line in last_frame.splitlines()[1:] if line and not line[0].isspace())
        cause = next(raised, None) or first_line(text)
        kind, _, message = cause.partition(": ")
        if kind.endswith(f".{UsageError.__name__}"):
            raise UsageError(message) from None
        if hidden := _NOT_IMPORTED.search(str(error)):
            raise UsageError(
                f"workers cannot import gistmill ({hidden[0]}): install it there, and take other "
                "packages of that name out of their PYTHONPATH, then run the same command to resume"
            ) from None
        raise EngineError(
            f"a worker cannot be started: {cause}; fix that, then run the same command to resume"
        ) from None
    except ray.exceptions.GetTimeoutError:
        minutes = pool.cluster.wait_minutes
        raise UsageError(
            f"the cluster could not place {pool.section}'s workers within cluster.wait_minutes="
            f"{minutes:g}; free resources or raise it, then run the same command to resume"
        ) from None


def _dataset(work: Work, make_worker: MakeWorker, pool: Pool) -> Any:
    """Map blocks, one per row, over the pool, with as many in flight as a worker can use: no engine
    idles while documents queue at another. The pool grows onto machines that join later."""
    num_documents, there = pool.slots + DOCUMENTS_OVER_SLOTS, max(1, work.num_documents)
    size = min(pool.size(), there)
    most = min(pool.max_workers or size, there)
    in_flight = min(num_documents, -(-there // most))
    _set_context(60 * pool.cluster.wait_minutes)
    source = PlanSource(work.documents, words_per_block(work, size))
    here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
    make = pickle_with_plugins(make_worker)
    return ray.data.read_datasource(
        source, override_num_blocks=1, num_cpus=0, label_selector=here
    ).map_batches(
        Actor,
        fn_constructor_args=(make, pool.cluster.storage_seconds, num_documents),
        batch_size=1,  # the whole block; Ray Data requires a number if num_gpus is set
        batch_format="pyarrow",
        num_cpus=pool.needs["CPU"],
        num_gpus=pool.gpus or None,
        compute=ActorPoolStrategy(
            min_size=size,
            initial_size=size,
            max_size=max(size, min(pool.max_workers or _MANY, there)),
            max_tasks_in_flight_per_actor=in_flight,
            max_concurrent_calls_per_actor=in_flight,
        ),
    )


def _set_context(seconds_to_wait: float) -> None:
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # Each row of the source is passed on as a block of its own: a byte never puts two together.
    context.target_max_block_size = 1
    context._max_num_blocks_in_streaming_gen_buffer = _AHEAD
    # Wait for all workers, or the first one up would get all of the longest documents.
    context.wait_for_min_actors_s = int(seconds_to_wait)
    # Ray Data fails an execution after 30 minutes without an output; a long book takes longer.
    context.execution_no_progress_timeout_s = -1
    # Scale up as soon as every worker is full, as far as there are resources; never scale down
    # while documents wait.
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    context.autoscaling_config.actor_pool_util_downscaling_threshold = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns that it would choose by itself
        # All blocks lie on the driver's node, whose workers would get the longest documents.
        context.execution_options.actor_locality_enabled = False
