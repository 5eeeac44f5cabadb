"""The built-in extractive engine: deterministic replies by the lexical rules of each prompt
(`Prompt.extractive`). It shows the pipeline on real text; it does not replace a model."""

import re
import time
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.prompts import Message

_TOKEN = re.compile(r"\w+|[^\w\s]")


class ExtractiveSettings(EngineSettings):
    """The `engine` section of engine=extractive; it has no keys of its own."""

    name: Literal["extractive"]
    context_tokens: PositiveInt

    is_model: ClassVar[bool] = False
    is_deterministic: ClassVar[bool] = True
    keeps_journal: ClassVar[bool] = False  # a journal took an eighth of a worker's time
    about_replies: ClassVar[str | None] = (
        "The extractive engine answered: sentences picked from the text by word counts, no "
        "language model. The table shows that the pipeline works on real text, not what a model "
        "would score."
    )

    def own_identity(self) -> Mapping[str, Any]:
        return {"version": ExtractiveEngine.version}

    async def start(self) -> "ExtractiveEngine":
        return ExtractiveEngine(self.context_tokens)


class ExtractiveEngine:
    """Runs on the CPU and is ready at once. Tokens are those of `num_tokens`."""

    name = "extractive"
    version = 2  # raise when its replies change

    def __init__(self, context_tokens: int = 1_000_000) -> None:
        self.context_tokens = context_tokens

    async def generate(self, request: Request) -> Reply:
        """The prompt's extractive reply, cut at `max_reply_tokens` (finish_reason length)."""
        started = time.perf_counter()
        assert request.fields is not None, "only engines with a model get requests without a prompt"
        # In a thread: ranking a book's sentences takes tenths of a second.
        text, most = await to_thread(request.fields.extractive), max(request.max_reply_tokens, 0)
        is_cut = num_tokens(text) > most
        if is_cut:
            text = text[: [0, *(token.end() for token in _TOKEN.finditer(text))][most]]
        return Reply(
            text=text,
            finish_reason="length" if is_cut else "stop",
            prompt_tokens=await self.count_tokens(request.messages),
            reply_tokens=num_tokens(text),
            seconds=time.perf_counter() - started,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of all messages, without a chat template."""
        return sum(num_tokens(message["content"]) for message in messages)


@lru_cache(maxsize=16)  # a prompt is counted when its length is checked and when it is answered
def num_tokens(text: str) -> int:
    """The number of tokens: runs of letters and digits, and each punctuation mark."""
    return sum(1 for _ in _TOKEN.finditer(text))  # a list of tokens would be larger than the text
