"""A `Worker` as a Ray Data actor in its own process, and the metrics it exports through Ray."""

import asyncio
import gc
import json
import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import ray
from ray.util.metrics import Counter

from pipeline.cluster.joining import is_lost
from pipeline.core.calls import UsageCounters
from pipeline.core.errors import EngineError
from pipeline.core.registry import unpickle_with_plugins
from pipeline.files.storage import retry_for
from pipeline.work.executions import DocumentWork
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import MakeWorker, outcome

_SECONDS_BETWEEN_METRICS = 5.0

# Ray metrics of a run, with descriptions. All have the tags `run` and `phase`.
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


class Actor:
    """The Ray Data UDF around a `Worker`.

    An input row is a block: pickled documents, each a DocumentWork. The output row has their
    outcomes (pipeline/worker/worker.py) as JSON.
    """

    def __init__(
        self,
        make_worker: bytes,
        tags: Mapping[str, str],
        storage_seconds: float,
        num_documents: int,
    ) -> None:
        """`make_worker`: a MakeWorker of `pickle_with_plugins`; `num_documents`: the most in
        flight."""
        retry_for(storage_seconds)
        make: MakeWorker = unpickle_with_plugins(make_worker)
        context = ray.get_runtime_context()
        # Ray keeps the id when it restarts the actor in another process.
        actor = context.get_actor_id() or ""
        self._worker = make(Placement(actor, context.get_node_id(), is_lost))
        self._metrics = _Metrics(self._worker.usage, tags)
        self._publishing: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(num_documents)
        # What is imported stays, so it is not searched for garbage: the process would do it when it
        # ends, for a quarter of the CPU time that it takes to start and end.
        gc.freeze()

    async def __call__(self, batch: Any) -> Any:
        if self._publishing is None:
            self._publishing = asyncio.create_task(self._metrics.publish())
        documents = chain.from_iterable(map(pickle.loads, batch["documents"].to_pylist()))
        results = await asyncio.gather(*map(self._result, documents))
        yield pa.table({"outcomes": [json.dumps(results)]})

    async def _result(self, document: DocumentWork) -> dict[str, str]:
        try:
            async with self._room:  # first come, first served: the longest were dealt first
                return await outcome(self._worker, document)
        except EngineError:
            os._exit(1)  # Ray restarts the actor, with a new engine, and retries its blocks


class _Metrics:
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
