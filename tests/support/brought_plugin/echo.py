"""An engine that says yes to judges, and else the text's first words."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gistmill.plugin import EngineSettings, Message, Reply, Request


class Echo:
    name = "echo"
    context_tokens = 100_000

    async def generate(self, request: Request) -> Reply:
        text = "yes" if request.prompt.startswith(("judge_", "rate_")) else "Rivers rise."
        return Reply(text=text, finish_reason="stop")

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)


class EchoSettings(EngineSettings):
    """Says yes to judges, and else that rivers rise. For tests of plugins."""

    name: Literal["echo"]

    def own_identity(self) -> Mapping[str, Any]:
        return {"version": 1}

    async def start(self) -> Echo:
        return Echo()
