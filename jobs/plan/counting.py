"""The pilot's documents through all stages with an engine that only counts tokens.

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

from jobs.loading import load_corpus
from jobs.phases import Phase
from jobs.plan.pilot import Pilot
from jobs.preparation import Prepared
from pipeline.ask import Reader
from pipeline.counting_engine import CountingEngine
from pipeline.document_progress import DocumentProgress
from pipeline.embedder import EmbedderSettings, Kind, Vectors
from pipeline.engines import reader_of
from pipeline.executor import DocumentExecutor, Summary
from pipeline.in_flight import Crashes, InFlightMarker
from pipeline.place import AnyPath
from pipeline.rows import Call, Record
from pipeline.shared_replies import SharedCopies
from pipeline.steps import Step
from pipeline.store import Shards
from pipeline.store.shard_files import content
from pipeline.units import Unit
from pipeline.usage import UsageCounters

R = TypeVar("R", bound=Record)
MakeEngine = Callable[[Phase], CountingEngine]
MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_DIMENSIONS = 384


class NoEmbedder(EmbedderSettings):
    """Vectors by chance, as a plan runs no model: different queries find different texts."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        drawn = b"".join(_drawn(text) for text in texts)
        vectors = np.frombuffer(drawn, dtype=np.int8).reshape(len(texts), _DIMENSIONS)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


def _drawn(text: str) -> bytes:
    return hashlib.shake_128(text.encode(errors="surrogatepass")).digest(_DIMENSIONS)


class Copies(Shards):
    """A warehouse that is only read: what is committed of `documents` stays in memory, of others
    nowhere."""

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

    def another(self) -> "Copies":
        """One that begins with the rows of this one; what is committed to it is not seen here."""
        found = Copies(self.warehouse, self._documents)
        found.kept = dict(self.kept)
        return found


def loaded(prepared: Prepared, pilot: Pilot) -> Copies:
    """The rows of the pilot's documents and questions, where the warehouse has none yet."""
    documents = {one.key.document_id for one in pilot.counted}
    copies = Copies(prepared.shards.warehouse, documents)
    first = {step.id for step in prepared.steps if step.stage is None}
    if any(u.step_id in first and not u.is_done for one in pilot.counted for u in one.units):
        load_corpus(prepared.config, copies, prepared.steps, lambda line: None)
    return copies


def execute(prepared: Prepared, pilot: Pilot, copies: Copies, make_engine: MakeEngine) -> None:
    """Every unit of the pilot that is not done; `copies` then hold its rows and calls."""
    for phase in prepared.phases:
        reader = None
        if phase.engine is not None:
            config = prepared.config
            how = (phase.engine, config.family_resolved(), config.reply_format)
            reader = reader_of(make_engine(phase), *how)
        asyncio.run(_phase(phase, pilot, copies, reader))


async def _phase(phase: Phase, pilot: Pilot, copies: Copies, reader: Reader | None) -> None:
    shared = cache(lambda step_id: SharedCopies(copies.warehouse, step_id))
    steps = phase.with_upstream()
    keys = [one.key for one in pilot.counted]
    planned = {one.key.document_id: one.units for one in pilot.counted}
    for _, items in phase.executions(keys, planned, lambda: 1):
        for document_id, units in items:
            await DocumentExecutor(
                shards=copies,
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


def totals(pilot: Pilot, copies: Copies, count_shared: bool) -> dict[str, Numbers]:
    """By step id what all documents come to. `count_shared`: replies that another document of the
    pilot asked for count too, as no other document of its group may ask for them."""
    found: dict[str, Numbers] = defaultdict(lambda: np.zeros(len(MEASURES)))
    for scale, record, step, _, rows in _written(pilot, copies):
        if record is Call:
            own = [call for call in rows if count_shared or not call.is_shared]
            found[step.id] += scale * cost_of(own)
    return found


def cost_of(calls: Iterable[Call]) -> Numbers:
    """Calls added up, by measure."""
    rows = [(1, c.prompt_tokens, c.prompt_tokens - c.cached_tokens, c.reply_tokens) for c in calls]
    total: Numbers = np.array([[0.0] * len(MEASURES), *rows]).sum(axis=0)
    return total


def disk(pilot: Pilot, copies: Copies) -> dict[str, int]:
    """Bytes of the files that are written, by table."""
    sizes: Counter[str] = Counter()
    for scale, record, step, unit, rows in _written(pilot, copies):
        sizes[record.table] += round(scale * len(content(record, step, unit, rows)))
    return dict(sizes)


def _written(pilot: Pilot, copies: Copies) -> Iterator[tuple[float, type[Record], Step, Unit, Any]]:
    """The rows of each unit that is counted, and by how much they are multiplied."""
    scales = {one.key.document_id: one.scale for one in pilot.counted}
    for record, step, unit, rows in copies.kept.values():
        yield scales[unit.document_id].get(step.id, 0.0), record, step, unit, rows
