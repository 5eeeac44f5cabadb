"""Real vLLM engines on a tiny model for tests: settings, requests, and their event loop."""

import asyncio
import os
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pipeline.asking.ask import Ask, Capacity
from pipeline.asking.replies import Replies
from pipeline.core.compose import compose
from pipeline.core.prompts import Message
from pipeline.engines.vllm import VllmSettings
from tests.support.reading import family, reader_of

T = TypeVar("T")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; some tests have several engines
FAMILY = family("generic")
LAUNCHED_AT = datetime(2024, 2, 29, 23, 59, tzinfo=UTC)


class Talk:
    """An engine and the one event loop that it is used from."""

    def __init__(self, *words: str | Path) -> None:
        self._runner = asyncio.Runner()
        self.engine: Any = self.run(settings(*words).of_run(LAUNCHED_AT).start())

    def run(self, talk: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(talk)

    def close(self) -> None:
        self.engine.llm.shutdown()
        self._runner.close()


def settings(*words: str | Path) -> VllmSettings:
    composed = compose(["engine=vllm", *map(str, words)])
    return VllmSettings.model_validate(composed["engine"])


def messages(text: str) -> tuple[Message, ...]:
    return ({"role": "user", "content": text},)


def ask(engine: Any, gist_tokens: int, deadline: float = 300.0) -> Ask:
    """Of a gist's reply budget."""
    budget = family("generic", {"gist": gist_tokens})
    reader = reader_of(engine, family=budget, deadline_seconds=deadline, slots=Capacity(8))
    return Ask(reader, "gist", "d1", Replies())
