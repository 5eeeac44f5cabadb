"""The expected costs of a run's remaining work: all documents, or a sample of every length, go
through all stages with an engine that counts tokens. The warehouse is read, never written."""

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, load_corpus
from pipeline.asking.ask import Reader, reader_of
from pipeline.asking.replies import SharedReplies
from pipeline.core.calls import Call, UsageCounters
from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.prompts import Message
from pipeline.core.rows import Document, Record
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.engines.extractive import ExtractiveSettings, num_tokens
from pipeline.engines.openai import OpenAISettings
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer
from pipeline.files.storage import AnyPath
from pipeline.store import Shards
from pipeline.store.shards.layout import shard_content
from pipeline.work.units import PlannedDocument, Step, Unit, weight
from pipeline.worker.crashes import Attempt
from pipeline.worker.executor import DocumentExecutor
from pipeline.worker.progress import DocumentProgress, Summary

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens", "budget_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
NO_COST: Numbers = np.zeros(len(MEASURES))
T = TypeVar("T")
_MAX_WORDS = 10_000_000  # of all counted prompts, roughly
_MIN_DOCUMENTS = 8
_TRIED_TEXTS = 12  # tokenized to find the tokens per byte
R = TypeVar("R", bound=Record)
_TOKENS_PER_BYTE = 0.25  # English prose: 0.21 to 0.25, Chinese: 0.2 to 0.3
_TEMPLATE_TOKENS = 16  # of a chat template around a message
_TRIED_CHARS = 20_000  # of each text
_PIECE_CHARS, _BLOCK_TOKENS = 64, 16  # a block is cached whole or not at all
_WITHOUT_CACHE = ("extractive", "scripted")
_DIMENSIONS = 384
_Shard = tuple[str, str, str, int]  # table, step id, unit, attempt


@dataclass(frozen=True)
class TokenCounts:
    """`of_text` counts the tokens of a text, `per_prompt` is how many the chat template adds, and
    `how` says how tokens are counted."""

    of_text: Callable[[str], int]
    per_prompt: int
    how: str

    def of(self, messages: Sequence[Message]) -> int:
        return self.per_prompt + sum(self.of_text(message["content"]) for message in messages)


def token_counts(settings: EngineSettings, texts: Sequence[str]) -> TokenCounts:
    """How to count an engine's tokens: as the engine does if it has a rule, else by tokens per
    byte, measured on `texts` if this machine has the model's tokenizer, or assumed."""
    if isinstance(settings, ExtractiveSettings):
        return TokenCounts(num_tokens, 0, "words and signs, as the engine counts")
    if not isinstance(settings, VllmSettings | OpenAISettings):
        return TokenCounts(lambda text: len(text.split()), 0, "words, as the engine counts")
    chat = local_chat_tokenizer(settings.model, settings) if texts else None
    rate, around = _TOKENS_PER_BYTE, _TEMPLATE_TOKENS
    how = f"estimated, no tokenizer on this machine: {rate:g} a byte of text"
    if chat is not None:
        tried = [text[:_TRIED_CHARS] for text in texts]
        around = len(chat.tokenize([{"role": "user", "content": ""}]))
        total = sum(len(chat.tokenize([{"role": "user", "content": t}])) - around for t in tried)
        rate = total / sum(len(text.encode()) for text in tried)
        how = f"the model's tokenizer on some documents: {rate:.3f} a byte of text"
    return TokenCounts(lambda text: round(len(text.encode()) * rate), around, how)


class CountingEngine:
    """Gives the expected replies and counts tokens. Its prefix cache is unlimited: any beginning of
    an earlier prompt counts as cached."""

    name = "counting"

    def __init__(self, settings: EngineSettings, counts: TokenCounts) -> None:
        self._thinking_tokens: int = getattr(settings, "thinking_tokens", 0)
        total = settings.context_tokens
        self.context_tokens = total - self._thinking_tokens if total else sys.maxsize
        self._counts = counts
        self._has_cache = settings.name not in _WITHOUT_CACHE
        self._beginnings: set[int] = set()  # of all prompts so far

    async def generate(self, request: Request) -> Reply:
        """The expected reply, after half of the thinking budget."""
        assert request.fields is not None, "nothing but prompts is counted"
        prompt_tokens = await self.count_tokens(request.messages)
        prompt = "\n".join(message["content"] for message in request.messages)
        cached = int(prompt_tokens * self.cached_share(prompt)) if self._has_cache else 0
        text, most = request.fields.expected(), request.max_reply_tokens
        reply_tokens = self._counts.of_text(text)
        if reply_tokens > most and request.fields.is_whole:
            text = text[: len(text) * most // reply_tokens + 1]
        return Reply(
            text=text,
            finish_reason="stop",
            prompt_tokens=prompt_tokens,
            cached_tokens=cached // _BLOCK_TOKENS * _BLOCK_TOKENS,
            reply_tokens=min(reply_tokens, most) + self._thinking_tokens // 2,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._counts.of(messages)

    def cached_share(self, prompt: str) -> float:
        """How much of a prompt, 0 to 1, an earlier one began with; records its beginnings."""
        cached, beginning = 0, 0
        for end in range(_PIECE_CHARS, len(prompt) + 1, _PIECE_CHARS):
            beginning = hash((beginning, prompt[end - _PIECE_CHARS : end]))
            if beginning in self._beginnings:  # so were all shorter ones
                cached = end
            self._beginnings.add(beginning)
        return cached / len(prompt) if prompt else 0.0


class NoEmbedder(EmbedderSettings):
    """Returns random vectors, as a plan runs no model: different queries find different texts."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        drawn = b"".join(hashlib.shake_128(text).digest(_DIMENSIONS) for text in encoded)
        vectors = np.frombuffer(drawn, dtype=np.int8).reshape(len(texts), _DIMENSIONS)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


class DryRunShards(Shards):
    """Writes nothing: rows committed for `documents` stay in memory, others are discarded."""

    def __init__(self, warehouse: AnyPath, documents: Collection[str] = ()) -> None:
        super().__init__(warehouse)
        self._documents = frozenset(documents)
        self.committed_rows: dict[_Shard, tuple[type[Record], Step, Unit, Any]] = {}

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
            self.committed_rows[key] = (record, step, unit, tuple(rows))
        return True

    def load(self, record: type[R], step_id: str, unit: str, attempt: int = 1) -> tuple[R, ...]:
        rows = self.committed_rows.get((record.table, step_id, unit, attempt))
        return super().load(record, step_id, unit, attempt) if rows is None else rows[-1]


@dataclass(frozen=True)
class Sample:
    """`scale`: all remaining work divided by the counted work, by step id."""

    num_documents: int
    documents: Sequence[PlannedDocument]
    scale: Mapping[str, float]

    @property
    def units(self) -> list[Unit]:
        return [unit for document in self.documents for unit in document.units]


@dataclass(frozen=True)
class Estimate:
    """`costs`: in `MEASURES` by step id; `disk`: bytes by table; `counts`: by phase."""

    sample: Sample
    costs: dict[str, Numbers]
    disk: dict[str, int]
    counts: dict[str, TokenCounts]


def estimate(prepared: Prepared) -> Estimate:
    sample, run = choose_sample(prepared), prepared.run
    shards = DryRunShards(prepared.shards.warehouse, {d.document_id for d in sample.documents})
    loading = {step.id for step in run.steps if step.stage is None}
    if any(unit.step_id in loading and not unit.is_done for unit in sample.units):
        for _ in load_corpus(run.config, shards, run.steps, prepared.committed, lambda line: None):
            pass
    first = run.steps[0].id
    units = [unit for unit in sample.units if unit.step_id == first]
    loaded = [shards.load(Document, first, u.unit, u.attempt) for u in units[:_TRIED_TEXTS]]
    texts = [document.text for (document,) in loaded]
    counts = {phase.name: token_counts(phase.engine, texts) for phase in run.phases if phase.engine}
    for phase in run.phases:
        reader = None
        if phase.engine is not None:
            engine = CountingEngine(phase.engine, counts[phase.name])
            is_constrained = run.config.is_constrained(phase.engine)
            reader = reader_of(engine, phase.engine, run.family, is_constrained)
            reader = replace(reader, keeps_journal=False)  # a run would take its replies for real
        asyncio.run(_execute(phase, sample, shards, reader))
    # All documents' costs by step id, and the bytes that the run will write by table.
    engines = {step.id: engine for step, engine in run.steps_with_engines}
    costs = {i: NO_COST for i, engine in engines.items() if engine and i in prepared.plan.pending()}
    disk = Counter[str]()
    for record, step, unit, rows in shards.committed_rows.values():
        scale = sample.scale.get(step.id, 0.0)
        disk[record.table] += round(scale * len(shard_content(record, step, unit, rows)))
        for call in rows if record is Call else ():
            if not call.is_shared:
                uncached = call.prompt_tokens - call.cached_tokens
                thinking = getattr(engines[step.id], "thinking_tokens", 0)
                budget = step.prompts[call.prompt]["max_reply_tokens"] + thinking
                numbers = [1, call.prompt_tokens, uncached, call.reply_tokens, budget]  # MEASURES
                costs[step.id] = costs[step.id] + scale * np.array(numbers)
    return Estimate(sample, costs, dict(disk), counts)


def choose_sample(prepared: Prepared) -> Sample:
    """As many documents as the words of their prompts allow, evenly spaced by length, and one for
    each step that would be missing."""
    steps = prepared.run.steps
    asking = {step.id for step in steps if step.prompts}
    by_question = {step.id for step in steps if step.per_question}
    left = list[tuple[int, str, Counter[str]]]()  # words, id, work by step
    total = 0.0
    for document in prepared.plan.documents():
        pending = [unit for unit in document.units if not unit.is_done]
        if document.is_bad or asking.isdisjoint(unit.step_id for unit in pending):
            continue
        work = Counter[str]()  # in questions, or in words if the step reads whole documents
        for unit in pending:
            total += weight(unit, document.num_words, unit.step_id in asking)
            size = len(unit.inputs) if unit.step_id in by_question else document.num_words
            work[unit.step_id] += max(1, size)
        left.append((document.num_words, document.document_id, work))
    left.sort(key=lambda item: item[:2])
    num = max(_MIN_DOCUMENTS, int(len(left) * _MAX_WORDS / max(1.0, total)))
    groups = np.array_split(np.arange(len(left)), min(num, len(left)) or 1)
    chosen = [left[indexes[len(indexes) // 2]] for indexes in groups if len(indexes)]
    covered = {step_id for *_, work in chosen for step_id in work}
    for item in left:
        if not item[-1].keys() <= covered:
            chosen.append(item)
            covered |= item[-1].keys()
    ids = {document_id for _, document_id, _ in chosen}
    documents = [d for d in prepared.plan.documents() if d.document_id in ids]
    documents.sort(key=lambda document: (document.num_words, document.document_id))
    all_work, counted = (sum((w for *_, w in some), Counter[str]()) for some in (left, chosen))
    return Sample(len(left), documents, {i: all_work[i] / counted[i] for i in counted})


class _InOrder(ThreadPoolExecutor):
    """Runs thread calls at once, so that prompts, and what is cached, are in the same order."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **named))
        return done


async def _execute(
    phase: Phase, sample: Sample, shards: DryRunShards, reader: Reader | None
) -> None:
    """Execute every unit of the sample that is not done; `shards` then holds its rows and calls."""

    async def never() -> bool:
        return False

    asyncio.get_running_loop().set_default_executor(_InOrder())
    folder = shards.warehouse / "shared"
    shared = cache(lambda step_id: SharedReplies(folder / step_id, is_only_read=True))
    steps = phase.with_upstream()
    for document in sample.documents:
        for document_id, units, *_ in phase.execution.work(document):
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
                is_ending=never,
                progress=DocumentProgress(document_id),
            ).finish()
