"""Execute the pilot's documents in all stages with an engine that only counts tokens.

In this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import numpy as np
from upath import UPath

from jobs.graph.loading import load_corpus
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from jobs.plan.pilot import Pilot
from pipeline.asking.ask import Reader
from pipeline.asking.readers import reader_of
from pipeline.asking.reply_log import SharedCopies
from pipeline.core.calls import Call, UsageCounters
from pipeline.core.rows import Record
from pipeline.engines.counting import CountingEngine
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.steps import Step
from pipeline.work.units import Unit
from pipeline.worker.document_progress import DocumentProgress
from pipeline.worker.executor import DocumentExecutor, Summary
from pipeline.worker.in_flight import Crashes, InFlightMarker

R = TypeVar("R", bound=Record)
_DIMENSIONS = 384


class NoEmbedder(EmbedderSettings):
    """Returns random vectors, as a plan runs no model: different queries find different texts."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        drawn = b"".join(hashlib.shake_128(one).digest(_DIMENSIONS) for one in encoded)
        vectors = np.frombuffer(drawn, dtype=np.int8).reshape(len(texts), _DIMENSIONS)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


class DryRunShards(Shards):
    """Shards of a warehouse that is only read: rows committed for `documents` stay in memory,
    others are discarded."""

    def __init__(self, warehouse: AnyPath, documents: Collection[str] = ()) -> None:
        super().__init__(warehouse)
        self._documents = frozenset(documents)
        self.kept: dict[tuple[str, str, str, int], tuple[type[Record], Step, Unit, Any]] = {}

    def commit(
        self,
        record: type[Record],
        step: Step,
        unit: Unit,
        rows: Sequence[Record],
        started_at: datetime | None = None,
    ) -> bool:
        if unit.document_id in self._documents:
            key = (record.table, step.id, unit.unit, unit.attempt)
            self.kept[key] = (record, step, unit, tuple(rows))
        return True

    def load(self, record: type[R], step_id: str, unit: str, attempt: int = 1) -> tuple[R, ...]:
        kept = self.kept.get((record.table, step_id, unit, attempt))
        return super().load(record, step_id, unit, attempt) if kept is None else kept[-1]

    def recorded(self, step_id: str, unit: str, attempt: int = 1) -> tuple[Call, ...] | None:
        kept = self.kept.get((Call.table, step_id, unit, attempt))
        return super().recorded(step_id, unit, attempt) if kept is None else kept[-1]


def load_pilot(prepared: Prepared, pilot: Pilot) -> DryRunShards:
    """Shards with the rows of the pilot's documents and questions, even if the warehouse has none
    yet."""
    dry_run = DryRunShards(prepared.shards.warehouse, pilot.units)
    first = {step.id for step in prepared.run.steps if step.stage is None}
    if any(u.step_id in first and not u.is_done for own in pilot.units.values() for u in own):
        load_corpus(prepared.run.config, dry_run, prepared.run.steps, lambda line: None)
    return dry_run


def execute_pilot(
    prepared: Prepared, pilot: Pilot, dry_run: DryRunShards, engines: Mapping[str, CountingEngine]
) -> None:
    """Execute every unit of the pilot that is not done, with `engines` by phase; `dry_run` then
    holds its rows and calls."""
    for phase in prepared.run.phases:
        reader = None
        if phase.engine is not None:
            how = (phase.engine, prepared.run.family, prepared.run.config.reply_format)
            reader = reader_of(engines[phase.name], *how)
        asyncio.run(_phase(phase, pilot, dry_run, reader))


async def _phase(phase: Phase, pilot: Pilot, dry_run: DryRunShards, reader: Reader | None) -> None:
    shared = cache(lambda step_id: SharedCopies(dry_run.warehouse, step_id))
    steps = phase.with_upstream()
    for _, documents in phase.executions(pilot.keys, pilot.units, lambda: 1):
        for document_id, units in documents:
            await DocumentExecutor(
                shards=dry_run,
                steps=steps,
                reader=reader,
                units=units,
                summary=Summary(document_id),
                rank=0,
                marker=InFlightMarker(UPath("nowhere"), document_id, "", alone=False),
                crashes=Crashes(None, Counter()),
                shared=shared,
                usage=UsageCounters(),
                is_ending=_never,
                progress=DocumentProgress(document_id),
            ).finish()


async def _never() -> bool:
    return False
