"""Estimates for plans of the tokens an engine would make of a text, without the engine.

Engines without a model count words or punctuation marks by rules of their own, which are applied
here. For a model, its tokenizer, if this machine has it, gives the tokens per byte of the corpus;
otherwise that ratio is an estimate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.core.engine import EngineSettings
from pipeline.core.prompts import Message
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
