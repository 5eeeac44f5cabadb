"""A Ray Data execution over documents, and the size of its worker pool."""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext

from pipeline.cluster.actor import Actor
from pipeline.cluster.blocks import PlanSource, read_one_by_one, words_per_block
from pipeline.cluster.joining import first_line, join, nodes
from pipeline.cluster.ray_watch import RayWatch
from pipeline.core.errors import CommandError, EngineError, UsageError
from pipeline.core.registry import pickle_with_plugins
from pipeline.core.settings import ClusterSettings
from pipeline.work.executions import Work
from pipeline.worker.inline import ShouldStop, ended_by
from pipeline.worker.worker import DOCUMENTS_OVER_SLOTS, Done, MakeWorker, take

_MANY = 1_000_000
_NOT_IMPORTED = re.compile(r"No module named '(?:gistmill|pipeline|stages|jobs)\b[^']*'")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colours


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
        """The initial number of workers: as many as the cluster fits now. Joins the cluster.

        Raises UsageError if fewer than `min_workers` fit and the cluster does not autoscale.
        """
        join(self.cluster.address)
        room = sum(self._on(node) for node in nodes())
        if room < self.min_workers and not self.cluster.autoscales:
            raise self._too_small()
        return min(self.max_workers or _MANY, max(room, self.min_workers))

    @property
    def needs(self) -> dict[str, float]:
        """The resources of a worker; for all CPUs of a machine, the largest machine's. Call `join`
        first."""
        cpus = self.cpus
        if cpus is None:
            cpus = max((node.get("CPU", 0.0) for node in nodes()), default=0.0) or 1.0
        return {"GPU": self.gpus, "CPU": cpus}

    def _on(self, resources: dict[str, float]) -> int:
        return min(
            int(resources.get(kind, 0.0) / need + 1e-9) if need else _MANY
            for kind, need in self.needs.items()
        )

    def _too_small(self) -> UsageError:
        there = {kind: sum(node.get(kind, 0.0) for node in nodes()) for kind in self.needs}
        wanted = {kind: self.min_workers * need for kind, need in self.needs.items()}
        lacking = [kind for kind in wanted if there[kind] < wanted[kind]]
        kind = lacking[0] if lacking else ("GPU" if self.gpus else "CPU")
        spread = "" if lacking else f" on {len(nodes())} machines, not enough on one"
        return UsageError(
            f"{self.section}.{kind.lower()}s_per_worker={self.needs[kind]:g}: {self.min_workers} "
            f"workers of that size need {wanted[kind]:g} {kind}s, there are {there[kind]:g}{spread}"
            "; lower it"
        )


def execute_documents(
    make_worker: MakeWorker,
    pool: Pool,
    tags: Mapping[str, str],
    work: Work,
    should_stop: ShouldStop,
    done: Done,
) -> None:
    """Execute the documents of `work`. `done` is called for each, in the order their blocks finish,
    with its summary, AccountingError or StorageError. `tags` label the metrics that workers export
    through Ray.

    Raises UsageError if no worker can be placed or one does not see the warehouse; StartError if an
    engine cannot start; OutageError if its server stays unreachable; EngineError if a worker cannot
    be restarted; and the error that `should_stop` returns.
    """
    batches: Any = iter(
        _dataset(work, make_worker, tags, pool).iter_batches(
            batch_size=None, prefetch_batches=0, batch_format="pyarrow"
        )
    )
    watch = RayWatch()
    try:
        with _rays_errors(pool), ended_by(lambda: watch.look() or should_stop()):
            for batch in batches:
                for outcomes in batch["outcomes"].to_pylist():
                    for outcome in json.loads(outcomes):
                        take(outcome, done)
    finally:
        batches.close()  # stops documents that are still in flight


@contextmanager
def _rays_errors(pool: Pool) -> Iterator[None]:
    try:
        yield
    except ray.exceptions.RayTaskError as error:  # of the task that reads the plan
        raise (error.cause if isinstance(error.cause, CommandError) else error) from None
    except ray.exceptions.RayActorError as error:
        kind, _, text = (cause := _first_cause(error)).partition(": ")
        if kind.endswith(f".{UsageError.__name__}"):
            raise UsageError(text) from None
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


def _first_cause(error: ray.exceptions.RayActorError) -> str:
    """The error that the worker's process raised, or else the first line of Ray's error."""
    text = _ESCAPES.sub("", str(error))
    *_, last_frame = re.split(r"^  File ", text, flags=re.MULTILINE)
    raised = (line for line in last_frame.splitlines()[1:] if line and not line[0].isspace())
    return next(raised, None) or first_line(text)


def _dataset(work: Work, make_worker: MakeWorker, tags: Mapping[str, str], pool: Pool) -> Any:
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
        fn_constructor_args=(make, tags, pool.cluster.storage_seconds, num_documents),
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
    read_one_by_one(context)
    # Wait for all workers, or the first one up would get all of the longest documents.
    context.wait_for_min_actors_s = int(seconds_to_wait)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns that it would choose by itself
        # All blocks lie on the driver's node, whose workers would get the longest documents.
        context.execution_options.actor_locality_enabled = False
