"""The documents that are counted: all of them if that is quick, else some of every length, whose
counts are scaled to the remaining work of all; and their execution in all stages with an engine
that only counts tokens.

In this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from upath import UPath

from jobs.graph.loading import load_corpus
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from pipeline.asking.reader import Reader
from pipeline.asking.readers import reader_of
from pipeline.asking.reply_log import SharedCopies
from pipeline.core.calls import Call, UsageCounters
from pipeline.core.rows import Record
from pipeline.engines.counting import CountingEngine
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.executions import Execution, PlannedDocument
from pipeline.work.steps import Step
from pipeline.work.units import Unit
from pipeline.worker.document_progress import DocumentProgress
from pipeline.worker.executor import DocumentExecutor, Summary
from pipeline.worker.in_flight import Crashes, InFlightMarker

R = TypeVar("R", bound=Record)
T = TypeVar("T")
_DIMENSIONS = 384
_MAX_WORDS = 10_000_000  # of all prompts that are counted, roughly
_MIN_DOCUMENTS, _MAX_QUESTIONS = 8, 200  # of a corpus; of a document


@dataclass(frozen=True)
class Pilot:
    """The documents that are counted, of `num_documents` with model calls to make. `scale`: by step
    id, the remaining work of all over that which is counted, in questions, or words if the step
    reads whole documents."""

    num_documents: int
    documents: Sequence[PlannedDocument]
    scale: Mapping[str, float]

    @property
    def units(self) -> list[Unit]:
        """The units of all its documents."""
        return [unit for document in self.documents for unit in document.units]

    @property
    def num_questions(self) -> int:
        pending = [unit for unit in self.units if not unit.is_done]
        return len({(unit.document_id, q) for unit in pending for q in unit.inputs})

    @property
    def is_whole(self) -> bool:
        """True if everything is counted, so that nothing is scaled."""
        return all(scale == 1 for scale in self.scale.values())


class _Left(NamedTuple):
    """A document with model calls to make: the words that they read, and the steps of its pending
    units."""

    num_words: int
    document_id: str
    words: float
    steps: frozenset[str]


def choose_pilot(prepared: Prepared) -> Pilot:
    """The pilot of the remaining work."""
    left, all_work = list[_Left](), Counter[str]()
    for document, words in _to_ask(prepared):
        steps = frozenset(unit.step_id for unit in _pending(document))
        left.append(_Left(document.num_words, document.document_id, words, steps))
        all_work += _work(document, prepared)
    chosen = {one.document_id for one in _some(left)}
    per_unit = prepared.run.config.questions_per_unit
    counted = [
        document._replace(units=_some_chunks(document.units, per_unit))
        for document, _ in _to_ask(prepared)
        if document.document_id in chosen
    ]
    counted.sort(key=lambda document: (document.num_words, document.document_id))
    own_work = sum((_work(document, prepared) for document in counted), Counter[str]())
    scale = {step_id: all_work[step_id] / own_work[step_id] for step_id in own_work}
    return Pilot(len(left), counted, scale)


def _to_ask(prepared: Prepared) -> Iterator[tuple[PlannedDocument, float]]:
    """The documents with model calls to make, and the words that these read."""
    asking = frozenset(step.id for step in prepared.run.steps if step.prompts)
    every = frozenset(step.id for step in prepared.run.steps)
    whole = Execution("", every, every, asking)
    for document in prepared.plan.documents():
        if not document.is_bad and any(unit.step_id in asking for unit in _pending(document)):
            yield document, sum(work.words for work in whole.work(document))


def _pending(document: PlannedDocument) -> Iterator[Unit]:
    return (unit for unit in document.units if not unit.is_done)


def _some(left: Sequence[_Left]) -> list[_Left]:
    """As many documents as the words of their prompts allow, evenly spaced by length, and one of
    each step that would be missing."""
    words = sum(one.words for one in left)
    num = max(_MIN_DOCUMENTS, int(len(left) * _MAX_WORDS / max(1.0, words)))
    ordered = sorted(left)
    groups = np.array_split(np.arange(len(ordered)), min(num, len(ordered)) or 1)
    chosen = {int(places[len(places) // 2]) for places in groups if len(places)}
    covered = {step_id for place in chosen for step_id in ordered[place].steps}
    for place, one in enumerate(ordered):
        if not one.steps <= covered:
            chosen.add(place)
            covered |= one.steps
    return [ordered[place] for place in sorted(chosen)]


def _work(document: PlannedDocument, prepared: Prepared) -> Counter[str]:
    """By step id the remaining questions, or the words of the document."""
    by_question = {step.id for step in prepared.run.steps if step.per_question}
    found = Counter[str]()
    for unit in _pending(document):
        size = len(unit.inputs) if unit.step_id in by_question else document.num_words
        found[unit.step_id] += max(1, size)
    return found


def _some_chunks(planned: Sequence[Unit], per_unit: int) -> list[Unit]:
    """A document's units; of those that are pending only some chunks of questions: about 200."""
    chunks = dict.fromkeys(u.chunk for u in planned if u.inputs and not u.is_done)
    kept = {None, *list(chunks)[: max(1, _MAX_QUESTIONS // per_unit)]}
    return [unit for unit in planned if unit.is_done or not unit.inputs or unit.chunk in kept]


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
    chosen = {document.document_id for document in pilot.documents}
    dry_run = DryRunShards(prepared.shards.warehouse, chosen)
    first = {step.id for step in prepared.run.steps if step.stage is None}
    if any(unit.step_id in first and not unit.is_done for unit in pilot.units):
        how = (prepared.run.config, dry_run, prepared.run.steps, prepared.committed)
        for _ in load_corpus(*how, lambda line: None):
            pass
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


class _InOrder(ThreadPoolExecutor):
    """Calls what an event loop sends to its threads at once, in the loop's own: in which order
    prompts are made, and so which of them finds its beginning cached, does not depend on the
    machine."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **named))
        return done


async def _phase(phase: Phase, pilot: Pilot, dry_run: DryRunShards, reader: Reader | None) -> None:
    asyncio.get_running_loop().set_default_executor(_InOrder())
    shared = cache(lambda step_id: SharedCopies(dry_run.warehouse, step_id))
    steps = phase.with_upstream()
    for document in pilot.documents:
        for document_id, units, _ in phase.execution.work(document):
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
