"""A `Worker` as a Ray Data actor in its own process, and the metrics it exports through Ray."""

import asyncio
import gc
import json
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

import pyarrow as pa
import ray
from ray.util.metrics import Counter

from pipeline.cluster.joining import is_lost
from pipeline.core.errors import (
    AccountingError,
    EngineError,
    OutageError,
    StartError,
    StorageError,
    UsageError,
)
from pipeline.core.plugins import unpickle_with_plugins
from pipeline.core.unit_progress import UsageCounters
from pipeline.files.storage_retries import retry_for
from pipeline.work.units import Unit
from pipeline.worker.executor import Summary
from pipeline.worker.in_flight import Placement

_SECONDS_BETWEEN_METRICS = 5.0

# What a run exports through Ray's metrics, with descriptions. All have the tags `run` and `phase`.
# Ray exports a counter as `ray_<name>_total`, one series per worker. The sum over workers is the
# run's total since Ray was started, short of the last seconds of each worker: Ray exports every ten
# seconds and ends workers abruptly.
COUNTERS = {
    "gistmill_calls": "Model calls answered",
    "gistmill_prompt_tokens": "Tokens of prompts, cached ones included",
    "gistmill_cached_tokens": "Tokens of prompts found in the engine's prefix cache",
    "gistmill_reply_tokens": "Tokens of replies",
    "gistmill_units": "Units of work committed",
    "gistmill_rows": "Rows committed",
    "gistmill_problems": "Rows committed with a problem",
}


class AnyWorker(Protocol):
    """The interface of `pipeline.worker.worker.Worker` that an actor uses."""

    usage: UsageCounters

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary: ...


MakeWorker = Callable[[Placement], AnyWorker]
"""Makes a worker; called in the worker's own process."""

# Ray preserves only the text of an exception, so these return as rows; the driver raises them.
ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (AccountingError, OutageError, StartError, StorageError, UsageError)
}


class Actor:
    """The Ray Data UDF around a `Worker`.

    A block holds rows (document_id, pickled units). It returns one row per document: `error`, the
    name of an error class or "", and `payload`, the error's message or the Summary as JSON. After a
    StorageError no document is begun: its replies could not be kept.
    """

    def __init__(self, make_worker: bytes, tags: Mapping[str, str], storage_seconds: float) -> None:
        """`make_worker`: a MakeWorker and its plugins, made by `pickle_with_plugins`."""
        retry_for(storage_seconds)
        self._refused: StorageError | None = None
        make: MakeWorker = unpickle_with_plugins(make_worker)
        context = ray.get_runtime_context()
        # The id stays the same when Ray restarts the actor in another process.
        actor = context.get_actor_id() or ""
        self._worker = make(Placement(actor, context.get_node_id(), is_lost))
        self._metrics = _Metrics(self._worker.usage, tags)
        self._publishing: asyncio.Task[None] | None = None
        # What is imported stays, and is not searched for garbage: the process would do it when it
        # ends, for a quarter of the CPU time that it takes to start and end.
        gc.freeze()

    async def __call__(self, batch: Any) -> Any:
        if self._publishing is None:
            self._publishing = asyncio.create_task(self._metrics.publish())
        yield pa.Table.from_pylist([await self._result(row) for row in batch.to_pylist()])

    async def _result(self, row: dict[str, Any]) -> dict[str, str]:
        units = pickle.loads(row["units"])
        try:
            if self._refused:
                raise self._refused
            summary = await self._worker.work(row["document_id"], units)
        except tuple(ERRORS.values()) as error:
            if isinstance(error, StorageError):
                self._refused = error
            return {"error": type(error).__name__, "payload": str(error)}
        except EngineError:
            os._exit(1)  # Ray restarts the actor, with a new engine, and retries the document
        return {"error": "", "payload": json.dumps(asdict(summary))}


class _Metrics:
    """Exports the worker's usage counters as Ray counters."""

    def __init__(self, usage: UsageCounters, tags: Mapping[str, str]) -> None:
        self._usage, self._published = usage, UsageCounters()
        self._counters = {
            name.removeprefix("gistmill_"): Counter(name, description, tuple(tags))
            for name, description in COUNTERS.items()
        }
        for counter in self._counters.values():
            counter.set_default_tags(dict(tags))

    async def publish(self) -> None:
        """Add the increments to Ray's counters every few seconds, until the process ends."""
        while True:
            for name, counter in self._counters.items():
                new = getattr(self._usage, name) - getattr(self._published, name)
                if new:  # Ray refuses an increment of 0
                    counter.inc(new)
            self._published = replace(self._usage)
            await asyncio.sleep(_SECONDS_BETWEEN_METRICS)
