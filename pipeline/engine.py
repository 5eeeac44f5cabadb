"""What an engine is: one async `generate`, its token counts and its context length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.errors import Problem
from pipeline.prompts import Fields, Message

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt to answer.

    `fields` are the values the prompt was rendered from; only the extractive engine reads them.
    `max_reply_tokens` counts the engine's own tokens. `attempt` is 1 unless asked again.
    """

    prompt: str
    fields: Fields
    messages: tuple[Message, ...]
    max_reply_tokens: int
    temperature: float = 0.0
    seed: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An engine's reply; `problem` is filled in by `Ask` (see pipeline/ask.py)."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
    seconds: float = 0.0
    problem: Problem | None = None


class Engine(Protocol):
    """Raises `EngineError` only when it is dead; whatever else happens is a Reply."""

    name: str
    is_model: bool  # may its verdicts be called ratings?
    context_tokens: int

    async def generate(self, request: Request) -> Reply: ...

    def count_tokens(self, messages: Sequence[Message]) -> int: ...
