"""A fake of MemoRAG's trained memory: an engine that reads a text once, keeps its compressed
states, and writes clues from them; and a kind of `memorize`, which hands it whole texts."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import PositiveInt

from gistmill.plugin import EngineSettings, Memorize, Message, Reply, Request


class States:
    """Tokens are states, each of `ratio` words."""

    name = "states"

    def __init__(self, context_tokens: int, ratio: int) -> None:
        self.context_tokens, self._ratio = context_tokens, ratio
        self._states: dict[str, list[str]] = {}

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages) // self._ratio

    async def generate(self, request: Request) -> Reply:
        """The first words of the longest paragraphs that the states hold, a line each."""
        text = request.fields.passages[0].text  # type: ignore[union-attr]  # clues have passages
        name = hashlib.sha256(text.encode()).hexdigest()
        if name not in self._states:
            self._states[name] = sorted(text.split("\n"), key=len)[-2:]
        lines = [" ".join(line.split()[:9]) for line in self._states[name]]
        return Reply(text="\n".join(lines), finish_reason="stop")


class StatesSettings(EngineSettings):
    name: Literal["states"]
    ratio: PositiveInt  # words that one state stands for

    def own_identity(self) -> Mapping[str, Any]:
        return {"ratio": self.ratio}

    async def start(self) -> States:
        return States(self.context_tokens or 0, self.ratio)


class MemorizeStates(Memorize):
    """The text as it stands: compressing it is the engine's."""

    kind = "states"
    version = 1
