"""An engine without a model that counts the tokens of a run's prompts and of the replies that the
prompts' modules expect.

Engines without a model count words or punctuation marks by rules of their own, which are applied
here. For a model, its tokenizer, if this machine has it, gives the tokens per byte of the corpus;
otherwise that ratio is an estimate."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.prompts import Message, Prompt
from pipeline.engines.extractive import ExtractiveSettings, num_tokens
from pipeline.engines.openai import OpenAISettings
from pipeline.engines.vllm import VllmSettings
from pipeline.engines.vllm.chat_tokenizer import local_chat_tokenizer

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
        return TokenCounts(_words, 0, "words, as the engine counts")
    chat = local_chat_tokenizer(settings.model, settings) if texts else None
    if chat is None:
        how = f"estimated, no tokenizer on this machine: {_TOKENS_PER_BYTE:g} a byte of text"
        return TokenCounts(_by_bytes(_TOKENS_PER_BYTE), _TEMPLATE_TOKENS, how)
    tried = [text[:_TRIED_CHARS] for text in texts]
    around = len(chat.tokenise([{"role": "user", "content": ""}]))
    total = sum(len(chat.tokenise([{"role": "user", "content": t}])) - around for t in tried)
    rate = total / sum(len(text.encode()) for text in tried)
    how = f"the model's tokenizer on the pilot: {rate:.3f} a byte of text"
    return TokenCounts(_by_bytes(rate), around, how)


def _words(text: str) -> int:
    return len(text.split())


def _by_bytes(tokens_per_byte: float) -> Callable[[str], int]:
    return lambda text: round(len(text.encode()) * tokens_per_byte)


_PIECE_CHARS, _BLOCK_TOKENS = 64, 16  # a block is cached whole or not at all
_WITHOUT_CACHE = ("extractive", "scripted")


class CountingEngine:
    """Stands in for the engine of `settings`; its tokens are counted by `counts`. `usual`: the mean
    reply tokens of prompts, where an earlier run tells them.

    A prompt's beginning that an earlier prompt had counts as cached, as if the cache were
    unlimited.
    """

    name = "counting"

    def __init__(
        self,
        settings: EngineSettings,
        counts: TokenCounts,
        usual: Mapping[str, float],
    ) -> None:
        self._thinking_tokens: int = getattr(settings, "thinking_tokens", 0)
        total = settings.context_tokens
        self.context_tokens = total - self._thinking_tokens if total else sys.maxsize
        self._counts, self._usual = counts, usual
        self._prefixes = None if settings.name in _WITHOUT_CACHE else Prefixes()
        self._counted: dict[int, int] = {}

    async def generate(self, request: Request) -> Reply:
        """The expected reply. Never fails, and takes no time."""
        assert request.fields is not None, "nothing but prompts is counted"
        prompt_tokens = self._num_tokens(request.messages)
        text, reply_tokens = self._expected(request, request.fields)
        return Reply(
            text=text,
            finish_reason="stop",
            prompt_tokens=prompt_tokens,
            cached_tokens=self._cached(request.messages, prompt_tokens),
            reply_tokens=reply_tokens,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._num_tokens(messages)

    def _num_tokens(self, messages: Sequence[Message]) -> int:
        name = hash(tuple(message["content"] for message in messages))
        if name not in self._counted:  # when it is admitted, and when it is answered
            self._counted[name] = self._counts.of(messages)
        return self._counted[name]

    def _expected(self, request: Request, prompt: Prompt[Any]) -> tuple[str, int]:
        """The reply's text and its tokens. If it is known how long replies were (`usual`), that
        includes thinking; else half of the thinking budget is added. A text that other prompts may
        show is cut or repeated to that length."""
        text, usual = prompt.expected(), self._usual.get(request.prompt)
        thinking = 0 if usual else self._thinking_tokens // 2
        tokens = self._counts.of_text(text) if usual is None else max(1, round(usual))
        tokens = min(tokens, request.max_reply_tokens)
        is_changed = prompt.is_whole and (usual or self._counts.of_text(text) > tokens)
        return self._sized(text, tokens) if is_changed else text, tokens + thinking

    def _sized(self, text: str, num_tokens: int) -> str:
        """The text cut, or repeated, to about so many tokens."""
        num_chars = len(text) * num_tokens // max(1, self._counts.of_text(text)) + 1
        return (f"{text} " * (num_chars // (len(text) + 1) + 1))[:num_chars]

    def _cached(self, messages: Sequence[Message], tokens: int) -> int:
        if self._prefixes is None:
            return 0
        text = "\n".join(message["content"] for message in messages)
        return int(tokens * self._prefixes.share(text)) // _BLOCK_TOKENS * _BLOCK_TOKENS


class Prefixes:
    """The beginnings of all prompts so far, in pieces of 64 characters."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def share(self, text: str) -> float:
        """The share of the text, 0 to 1, with which an earlier one began; records the text's
        beginnings."""
        found, before, is_known = 0, 0, True
        for end in range(_PIECE_CHARS, len(text) + 1, _PIECE_CHARS):
            before = hash((before, text[end - _PIECE_CHARS : end]))
            is_known = is_known and before in self._known
            if is_known:
                found = end
            else:
                self._known.add(before)
        return found / len(text) if text else 0.0
