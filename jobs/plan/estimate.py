"""The expected costs of a run's remaining work: all documents, or a sample of every length, go
through all stages with an engine that counts the tokens of prompts and of expected replies; the
counts are scaled to all documents.

Engines without a model count words or punctuation marks by rules of their own, which are applied
here. For a model, its tokenizer, if this machine has it, gives the tokens per byte of the corpus;
otherwise that ratio is an estimate.

Runs in this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, load_corpus
from pipeline.asking.known_replies import SharedCopies
from pipeline.asking.reader import Reader, reader_of
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
from pipeline.store.shards.shard_content import shard_content
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


@dataclass(frozen=True)
class TokenCounts:
    """Functions that count an engine's tokens: `of_text` counts a text alone, `per_prompt` is added
    for the chat template, and `how` names the method."""

    of_text: Callable[[str], int]
    per_prompt: int
    how: str

    def of(self, messages: Sequence[Message]) -> int:
        return self.per_prompt + sum(self.of_text(message["content"]) for message in messages)


def token_counts(settings: EngineSettings, texts: Sequence[str]) -> TokenCounts:
    """`texts` are non-empty pieces of the corpus."""
    if isinstance(settings, ExtractiveSettings):
        return TokenCounts(num_tokens, 0, "words and signs, as the engine counts")
    if not isinstance(settings, VllmSettings | OpenAISettings):
        return TokenCounts(lambda text: len(text.split()), 0, "words, as the engine counts")
    chat = local_chat_tokenizer(settings.model, settings) if texts else None
    if chat is None:
        how = f"estimated, no tokenizer on this machine: {_TOKENS_PER_BYTE:g} a byte of text"
        return TokenCounts(_by_bytes(_TOKENS_PER_BYTE), _TEMPLATE_TOKENS, how)
    tried = [text[:_TRIED_CHARS] for text in texts]
    around = len(chat.tokenise([{"role": "user", "content": ""}]))
    total = sum(len(chat.tokenise([{"role": "user", "content": t}])) - around for t in tried)
    rate = total / sum(len(text.encode()) for text in tried)
    how = f"the model's tokenizer on some documents: {rate:.3f} a byte of text"
    return TokenCounts(_by_bytes(rate), around, how)


def _by_bytes(tokens_per_byte: float) -> Callable[[str], int]:
    return lambda text: round(len(text.encode()) * tokens_per_byte)


class CountingEngine:
    """Stands in for the engine of `settings`; its tokens are counted by `counts`.

    A beginning that an earlier prompt also had counts as cached, as if the cache were unlimited.
    """

    name = "counting"

    def __init__(self, settings: EngineSettings, counts: TokenCounts) -> None:
        self._thinking_tokens: int = getattr(settings, "thinking_tokens", 0)
        total = settings.context_tokens
        self.context_tokens = total - self._thinking_tokens if total else sys.maxsize
        self._counts = counts
        self._has_cache = settings.name not in _WITHOUT_CACHE
        self._beginnings: set[int] = set()  # of all prompts so far

    async def generate(self, request: Request) -> Reply:
        """The expected reply, after half of the thinking budget; a reply that other prompts may
        show is cut to its own budget. Never fails, and takes no time."""
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
        """The share of a prompt, 0 to 1, with which an earlier one began, in pieces of 64
        characters; records its beginnings."""
        cached, beginning, is_known = 0, 0, True
        for end in range(_PIECE_CHARS, len(prompt) + 1, _PIECE_CHARS):
            beginning = hash((beginning, prompt[end - _PIECE_CHARS : end]))
            is_known = is_known and beginning in self._beginnings
            cached = end if is_known else cached
            self._beginnings.add(beginning)
        return cached / len(prompt) if prompt else 0.0


class NoEmbedder(EmbedderSettings):
    """Returns random vectors, as a plan runs no model: different queries find different texts."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        drawn = b"".join(hashlib.shake_128(one).digest(_DIMENSIONS) for one in encoded)
        vectors = np.frombuffer(drawn, dtype=np.int8).reshape(len(texts), _DIMENSIONS)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


class DryRunShards(Shards):
    """Writes nothing: rows committed for `documents` stay in memory, others are discarded."""

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


@dataclass(frozen=True)
class Sample:
    """The counted documents, of `num_documents` with model calls to make. `scale`: by step id, all
    remaining work divided by the counted work, in questions, or in words if the step reads whole
    documents."""

    num_documents: int
    documents: Sequence[PlannedDocument]
    scale: Mapping[str, float]

    @property
    def units(self) -> list[Unit]:
        return [unit for document in self.documents for unit in document.units]

    @property
    def num_questions(self) -> int:
        return len({(u.document_id, q) for u in self.units if not u.is_done for q in u.inputs})

    @property
    def is_whole(self) -> bool:
        """True if everything is counted and nothing is scaled."""
        return all(scale == 1 for scale in self.scale.values())


@dataclass(frozen=True)
class Estimate:
    """`costs`: of the remaining work, in `MEASURES` by step id; its `budget_tokens` assume that
    every reply takes its whole budget. `disk`: bytes by table. `counts`: by phase, the method of
    counting tokens."""

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
    """The documents to count, and the factors that scale them to the remaining work."""
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
    for document in prepared.plan.documents():
        asks = any(unit.step_id in asking and not unit.is_done for unit in document.units)
        if asks and not document.is_bad:
            yield document


def _some(left: Sequence[_Left]) -> set[str]:
    """The ids of as many documents as the words of their prompts allow, evenly spaced by length,
    and of one document for each step that would be missing."""
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
    by_question = {step.id for step in prepared.run.steps if step.per_question}
    found = Counter[str]()
    for unit in document.units:
        if not unit.is_done:
            size = len(unit.inputs) if unit.step_id in by_question else document.num_words
            found[unit.step_id] += max(1, size)
    return found


class _InOrder(ThreadPoolExecutor):
    """Runs an event loop's thread calls at once, in the loop's own thread. This fixes the order of
    prompts, and so which beginnings count as cached, on every machine."""

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
                is_ending=_never,
                progress=DocumentProgress(document_id),
            ).finish()


async def _never() -> bool:
    return False


def _scaled(
    prepared: Prepared, sample: Sample, shards: DryRunShards
) -> tuple[dict[str, Numbers], dict[str, int]]:
    """All documents' costs by step id, and the bytes that the run will write by table."""
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
