"""The process of a worker: a `Worker` as a Ray Data actor, and what it tells Ray's metrics."""

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

from pipeline.errors import AccountingError, EngineError, StartError, UsageError
from pipeline.executor import Summary
from pipeline.metrics import COUNTERS
from pipeline.plugins import received
from pipeline.units import Unit
from pipeline.usage import UsageCounters

_SECONDS_BETWEEN_METRICS = 5.0


class AnyWorker(Protocol):
    """What an actor needs of a `pipeline.worker.Worker`."""

    usage: UsageCounters

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary: ...


MakeWorker = Callable[[str], AnyWorker]
"""A worker of that name, in its own process."""

# Ray keeps of an exception only its text, so these come back as rows and are raised again here.
ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (AccountingError, StartError, UsageError)
}


class Actor:
    """A Ray Data worker around a `Worker`; its blocks are documents."""

    def __init__(self, make_worker: bytes, tags: Mapping[str, str]) -> None:
        """`make_worker`: a MakeWorker with its plugins, as `pipeline.plugins.sent` made it."""
        make: MakeWorker = received(make_worker)
        # Ray gives the next process of an actor the same id.
        self._worker = make(ray.get_runtime_context().get_actor_id() or "")
        self._metrics = _Metrics(self._worker.usage, tags)
        self._publishing: asyncio.Task[None] | None = None
        # What is imported stays, and is not searched for garbage: the process would do it when it
        # ends, for a quarter of the CPU time that it takes to start and end.
        gc.freeze()

    async def __call__(self, batch: Any) -> Any:
        if self._publishing is None:
            self._publishing = asyncio.create_task(self._metrics.publish())
        yield pa.Table.from_pylist([await self._told(row) for row in batch.to_pylist()])

    async def _told(self, row: dict[str, Any]) -> dict[str, str]:
        units = pickle.loads(row["units"])
        try:
            summary = await self._worker.work(row["document_id"], units)
        except tuple(ERRORS.values()) as error:
            return {"error": type(error).__name__, "told": str(error)}
        except EngineError:
            os._exit(1)  # Ray starts another process with another engine, and asks it again
        return {"error": "", "told": json.dumps(asdict(summary))}


class _Metrics:
    """The worker's usage counters as counters of Ray."""

    def __init__(self, usage: UsageCounters, tags: Mapping[str, str]) -> None:
        self._usage, self._published = usage, UsageCounters()
        self._counters = {
            name.removeprefix("gistmill_"): Counter(name, told, tuple(tags))
            for name, told in COUNTERS.items()
        }
        for counter in self._counters.values():
            counter.set_default_tags(dict(tags))

    async def publish(self) -> None:
        """Every few seconds what is new, until the process ends."""
        while True:
            for name, counter in self._counters.items():
                new = getattr(self._usage, name) - getattr(self._published, name)
                if new:  # Ray takes no 0
                    counter.inc(new)
            self._published = replace(self._usage)
            await asyncio.sleep(_SECONDS_BETWEEN_METRICS)
