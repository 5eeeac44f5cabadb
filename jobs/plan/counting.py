"""A plan's engine, embedder and shards: they count the tokens of prompts and of the replies that
the prompts' modules expect, return random vectors, and keep rows in memory.

Engines without a model count words or punctuation marks by rules of their own, which are applied
here. For a model, its tokenizer, if this machine has it, gives the tokens per byte of the corpus;
otherwise that ratio is an estimate."""

import hashlib
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.prompts import Message
from pipeline.core.rows import Record
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.engines.extractive import ExtractiveSettings, num_tokens
from pipeline.engines.openai import OpenAISettings
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer
from pipeline.files.place import AnyPath
from pipeline.store import Shards
from pipeline.work.steps import Step
from pipeline.work.units import Unit

R = TypeVar("R", bound=Record)
_TOKENS_PER_BYTE = 0.25  # English prose: 0.21 to 0.25, Chinese: 0.2 to 0.3
_TEMPLATE_TOKENS = 16  # of a chat template around a message
_TRIED_CHARS = 20_000  # of each text


@dataclass(frozen=True)
class TokenCounts:
    """Functions that count an engine's tokens: `of_text` counts a text alone, `per_prompt` is added
    for the chat template, and `how` names the method.
    """

    of_text: Callable[[str], int]
    per_prompt: int
    how: str

    def of(self, messages: Sequence[Message]) -> int:
        return self.per_prompt + sum(self.of_text(message["content"]) for message in messages)


def token_counts(settings: EngineSettings, texts: Sequence[str]) -> TokenCounts:
    """The token counts of the engine of `settings`; `texts` are pieces of the corpus, none of them
    empty."""
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


_PIECE_CHARS, _BLOCK_TOKENS = 64, 16  # a block is cached whole or not at all
_WITHOUT_CACHE = ("extractive", "scripted")


class CountingEngine:
    """Stands in for the engine of `settings`; its tokens are counted by `counts`.

    A prompt's beginning that an earlier prompt had counts as cached, as if the cache were
    unlimited.
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
        """The expected reply, after half of the thinking budget; one that other prompts may show is
        cut to its own budget. Never fails, and takes no time."""
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


_DIMENSIONS = 384


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
