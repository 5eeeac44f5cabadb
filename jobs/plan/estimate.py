"""The expected costs of a run's remaining work: its documents, all of them if that is quick, else
some of every length, go through all stages with an engine that only counts tokens; what they take
is scaled to all.

In this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from jobs.graph.loading import load_corpus
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from jobs.plan.counting import CountingEngine, DryRunShards, TokenCounts, token_counts
from pipeline.asking.known_replies import SharedCopies
from pipeline.asking.reader import Reader
from pipeline.asking.readers import reader_of
from pipeline.core.calls import Call, UsageCounters
from pipeline.core.rows import Document
from pipeline.store.shards.shard_content import shard_content
from pipeline.work.executions import PlannedDocument, weight
from pipeline.work.units import Unit
from pipeline.worker.crashes import Attempt
from pipeline.worker.executor import DocumentExecutor, Summary
from pipeline.worker.heartbeat import DocumentProgress

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens", "budget_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
NO_COST: Numbers = np.zeros(len(MEASURES))
T = TypeVar("T")
_MAX_WORDS = 10_000_000  # of all prompts that are counted, roughly
_MIN_DOCUMENTS = 8
_TRIED_TEXTS = 12  # tokenized to find the tokens per byte


@dataclass(frozen=True)
class Sample:
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
        return len({(u.document_id, q) for u in self.units if not u.is_done for q in u.inputs})

    @property
    def is_whole(self) -> bool:
        """True if everything is counted, so that nothing is scaled."""
        return all(scale == 1 for scale in self.scale.values())


@dataclass(frozen=True)
class Estimate:
    """`costs`: of the remaining work, in `MEASURES` by step id; `budget_tokens` are those of the
    same calls if every reply took its whole budget. `disk`: bytes by table. `counts`: by phase, the
    method of counting tokens."""

    sample: Sample
    costs: dict[str, Numbers]
    disk: dict[str, int]
    counts: dict[str, TokenCounts]


def estimate(prepared: Prepared) -> Estimate:
    """The estimate for the remaining work."""
    sample, run = choose_sample(prepared), prepared.run
    shards = DryRunShards(prepared.shards.warehouse, {d.document_id for d in sample.documents})
    loading = {step.id for step in run.steps if step.stage is None}
    if any(unit.step_id in loading and not unit.is_done for unit in sample.units):
        for _ in load_corpus(run.config, shards, run.steps, prepared.committed, lambda line: None):
            pass
    first = run.steps[0].id
    units = [unit for unit in sample.units if unit.step_id == first]
    read = [shards.load(Document, first, u.unit, u.attempt) for u in units[:_TRIED_TEXTS]]
    texts = [document.text for (document,) in read]
    counts = {phase.name: token_counts(phase.engine, texts) for phase in run.phases if phase.engine}
    for phase in run.phases:
        reader = None
        if phase.engine is not None:
            engine = CountingEngine(phase.engine, counts[phase.name])
            reader = reader_of(engine, phase.engine, run.family, run.config.reply_format)
        asyncio.run(_execute(phase, sample, shards, reader))
    return Estimate(sample, *_scaled(prepared, sample, shards), counts)


# A document with model calls to make: its words, its id, the words that its calls read, and the
# steps of its pending units.
_Left = tuple[int, str, float, frozenset[str]]


def choose_sample(prepared: Prepared) -> Sample:
    """The documents of the remaining work that are counted, and what they are scaled by."""
    asking = frozenset(step.id for step in prepared.run.steps if step.prompts)
    left, all_work = list[_Left](), Counter[str]()
    for document in _to_ask(prepared, asking):
        pending = [unit for unit in document.units if not unit.is_done]
        words = sum(weight(unit, document.num_words, unit.step_id in asking) for unit in pending)
        steps = frozenset(unit.step_id for unit in pending)
        left.append((document.num_words, document.document_id, words, steps))
        all_work += _work(document, prepared)
    chosen = _some(left)
    counted = [d for d in _to_ask(prepared, asking) if d.document_id in chosen]
    counted.sort(key=lambda document: (document.num_words, document.document_id))
    own_work = sum((_work(document, prepared) for document in counted), Counter[str]())
    scale = {step_id: all_work[step_id] / own_work[step_id] for step_id in own_work}
    return Sample(len(left), counted, scale)


def _to_ask(prepared: Prepared, asking: Collection[str]) -> Iterator[PlannedDocument]:
    """The documents with model calls to make, by the steps that ask a model."""
    for document in prepared.plan.documents():
        asks = any(unit.step_id in asking and not unit.is_done for unit in document.units)
        if asks and not document.is_bad:
            yield document


def _some(left: Sequence[_Left]) -> set[str]:
    """The ids of as many documents as the words of their prompts allow, evenly spaced by length,
    and of one of each step that would be missing."""
    total = sum(words for _, _, words, _ in left)
    num = max(_MIN_DOCUMENTS, int(len(left) * _MAX_WORDS / max(1.0, total)))
    ordered = sorted(left)
    groups = np.array_split(np.arange(len(ordered)), min(num, len(ordered)) or 1)
    chosen = [ordered[places[len(places) // 2]] for places in groups if len(places)]
    covered = {step_id for *_, steps in chosen for step_id in steps}
    for one in ordered:
        if not one[-1] <= covered:
            chosen.append(one)
            covered |= one[-1]
    return {document_id for _, document_id, _, _ in chosen}


def _work(document: PlannedDocument, prepared: Prepared) -> Counter[str]:
    """By step id the remaining questions, or the words of the document."""
    by_question = {step.id for step in prepared.run.steps if step.per_question}
    found = Counter[str]()
    for unit in document.units:
        if not unit.is_done:
            size = len(unit.inputs) if unit.step_id in by_question else document.num_words
            found[unit.step_id] += max(1, size)
    return found


class _InOrder(ThreadPoolExecutor):
    """Calls what an event loop sends to its threads at once, in the loop's own: in which order
    prompts are made, and so which of them finds its beginning cached, does not depend on the
    machine."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **named))
        return done


async def _execute(
    phase: Phase, sample: Sample, shards: DryRunShards, reader: Reader | None
) -> None:
    """Execute every unit of the sample that is not done; `shards` then holds its rows and calls."""
    asyncio.get_running_loop().set_default_executor(_InOrder())
    shared = cache(lambda step_id: SharedCopies(shards.warehouse, step_id))
    steps = phase.with_upstream()
    for document in sample.documents:
        for document_id, units, _ in phase.execution.work(document):
            await DocumentExecutor(
                shards=shards,
                steps=steps,
                reader=reader,
                units=units,
                summary=Summary(document_id),
                rank=0,
                attempt=Attempt(),
                shared=shared,
                usage=UsageCounters(),
                is_ending=_never,
                progress=DocumentProgress(document_id),
            ).finish()


async def _never() -> bool:
    return False


def _scaled(
    prepared: Prepared, sample: Sample, shards: DryRunShards
) -> tuple[dict[str, Numbers], dict[str, int]]:
    """The costs of all documents by step id, of every step with remaining work that asks a model;
    and the bytes of the files that the run will write, by table."""
    engines = {step.id: engine for step, engine in prepared.run.steps_with_engines}
    costs = {i: NO_COST for i, engine in engines.items() if engine and i in prepared.plan.pending()}
    disk: Counter[str] = Counter()
    for record, step, unit, rows in shards.kept.values():
        scale = sample.scale.get(step.id, 0.0)
        disk[record.table] += round(scale * len(shard_content(record, step, unit, rows)))
        for call in rows if record is Call else ():
            if not call.is_shared:
                uncached = call.prompt_tokens - call.cached_tokens
                thinking = getattr(engines[step.id], "thinking_tokens", 0)
                budget = step.prompts[call.prompt]["max_reply_tokens"] + thinking
                own = [1, call.prompt_tokens, uncached, call.reply_tokens, budget]  # MEASURES
                costs[step.id] = costs[step.id] + scale * np.array(own)
    return costs, dict(disk)
