"""Execute the pilot's documents in all stages with an engine that only counts tokens.

In this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from pipeline.core.calls import UsageCounters
from pipeline.core.rows import Call, Record
from pipeline.engines.counting import CountingEngine
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.store.shards.shard_files import shard_content
from pipeline.work.steps import Step
from pipeline.work.units import Unit
from pipeline.worker.document_progress import DocumentProgress
from pipeline.worker.executor import DocumentExecutor, Summary
from pipeline.worker.in_flight import Crashes, InFlightMarker

R = TypeVar("R", bound=Record)
MakeEngine = Callable[[Phase], CountingEngine]
MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_DIMENSIONS = 384


class NoEmbedder(EmbedderSettings):
    """Returns random vectors, as a plan runs no model: different queries find different texts."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        drawn = b"".join(_drawn(text) for text in texts)
        vectors = np.frombuffer(drawn, dtype=np.int8).reshape(len(texts), _DIMENSIONS)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


def _drawn(text: str) -> bytes:
    return hashlib.shake_128(text.encode(errors="surrogatepass")).digest(_DIMENSIONS)


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

    def clone(self) -> "DryRunShards":
        """A copy that begins with these rows; rows committed to it are not added here."""
        found = DryRunShards(self.warehouse, self._documents)
        found.kept = dict(self.kept)
        return found


def load_pilot(prepared: Prepared, pilot: Pilot) -> DryRunShards:
    """Shards with the rows of the pilot's documents and questions, even if the warehouse has none
    yet."""
    documents = {one.key.document_id for one in pilot.counted}
    dry_run = DryRunShards(prepared.shards.warehouse, documents)
    first = {step.id for step in prepared.run.steps if step.stage is None}
    if any(u.step_id in first and not u.is_done for one in pilot.counted for u in one.units):
        load_corpus(prepared.run.config, dry_run, prepared.run.steps, lambda line: None)
    return dry_run


def execute_pilot(
    prepared: Prepared, pilot: Pilot, dry_run: DryRunShards, make_engine: MakeEngine
) -> None:
    """Execute every unit of the pilot that is not done; `dry_run` then holds its rows and calls."""
    for phase in prepared.run.phases:
        reader = None
        if phase.engine is not None:
            how = (phase.engine, prepared.run.family, prepared.run.config.reply_format)
            reader = reader_of(make_engine(phase), *how)
        asyncio.run(_phase(phase, pilot, dry_run, reader))


async def _phase(phase: Phase, pilot: Pilot, dry_run: DryRunShards, reader: Reader | None) -> None:
    shared = cache(lambda step_id: SharedCopies(dry_run.warehouse, step_id))
    steps = phase.with_upstream()
    keys = [one.key for one in pilot.counted]
    planned = {one.key.document_id: one.units for one in pilot.counted}
    for _, documents in phase.executions(keys, planned, lambda: 1):
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


def total_costs(pilot: Pilot, dry_run: DryRunShards, count_shared: bool) -> dict[str, Numbers]:
    """The costs of all documents by step id. `count_shared`: also count replies that another
    document of the pilot asked for, as other documents of the group may have to ask for them."""
    found: dict[str, Numbers] = defaultdict(lambda: np.zeros(len(MEASURES)))
    for scale, record, step, _, rows in _written(pilot, dry_run):
        if record is Call:
            own = [call for call in rows if count_shared or not call.is_shared]
            found[step.id] += scale * cost_of(own)
    return found


def cost_of(calls: Iterable[Call]) -> Numbers:
    """The sums of the calls' costs, by measure."""
    rows = [(1, c.prompt_tokens, c.prompt_tokens - c.cached_tokens, c.reply_tokens) for c in calls]
    total: Numbers = np.array([[0.0] * len(MEASURES), *rows]).sum(axis=0)
    return total


def disk_bytes(pilot: Pilot, dry_run: DryRunShards) -> dict[str, int]:
    """The bytes of the files that the run will write, by table."""
    sizes: Counter[str] = Counter()
    for scale, record, step, unit, rows in _written(pilot, dry_run):
        sizes[record.table] += round(scale * len(shard_content(record, step, unit, rows)))
    return dict(sizes)


def _written(
    pilot: Pilot, dry_run: DryRunShards
) -> Iterator[tuple[float, type[Record], Step, Unit, Any]]:
    """The rows of each unit that is counted, and the factor by which they are multiplied."""
    scales = {one.key.document_id: one.scale for one in pilot.counted}
    for record, step, unit, rows in dry_run.kept.values():
        yield scales[unit.document_id].get(step.id, 0.0), record, step, unit, rows
