"""The scripted engine, for tests: replies by the rules of a YAML file.

    replies:                      # the first rule that matches a request gives the reply
      - {prompt: answer, match: "Who wrote", reply: "Answer: (B)"}
      - {prompt: gist, reply: "cut off", finish_reason: length}
      - {match: "chapter 9", hang: true}    # never replies; with die: true the engine dies
      - {reply: "anything else"}
    start_seconds: 2.5            # how long the engine takes to start
    start_dies: true              # its process exits while it starts
    start_fails: "out of memory"  # it cannot start, for this reason

`match` is a regular expression, searched in the rendered messages. Tokens are words. A request that
no rule matches gets finish_reason abort.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.errors import EngineError, StartError
from pipeline.core.prompts import Message
from pipeline.core.settings import Settings, parsed_yaml, text_of


class Rule(Settings):
    """One entry of `replies`. `prompt`, `match` and `attempt` select requests; null: all."""

    prompt: str | None = None
    match: re.Pattern[str] = re.compile("")
    attempt: int | None = None
    reply: str = ""
    finish_reason: Literal["stop", "length", "abort"] = "stop"
    seconds: float = 0.0
    hang: bool = False
    die: bool = False


class Script(Settings):
    replies: list[Rule]
    start_seconds: float = 0.0
    start_dies: bool = False
    start_fails: str | None = None


def read_script(path: str) -> Script:
    """Read a script. Raises UsageError naming file and key where it is missing or invalid."""
    return parsed_yaml(text_of(Path(path)), Script, path)


class ScriptedSettings(EngineSettings):
    """The `engine` section of engine=scripted; `script` is the YAML file."""

    name: Literal["scripted"]
    script: str
    context_tokens: PositiveInt

    takes_constraints: ClassVar[bool] = True  # a script's author keeps to them

    def own_identity(self) -> Mapping[str, Any]:
        read_script(self.script)
        return {"script": hashlib.sha256(Path(self.script).read_bytes()).hexdigest()[:8]}

    async def start(self) -> "ScriptedEngine":
        script = read_script(self.script)
        await asyncio.sleep(script.start_seconds)
        if script.start_fails is not None:
            raise StartError(script.start_fails)
        if script.start_dies:
            os._exit(1)
        return ScriptedEngine(self.script, self.context_tokens)


class ScriptedEngine:
    """Replies by a script. `generate` raises EngineError where the rule is `die: true`."""

    def __init__(self, script: str, context_tokens: int) -> None:
        self.name = f"scripted:{Path(script).stem}"
        self.context_tokens = context_tokens
        self._rules = read_script(script).replies

    async def generate(self, request: Request) -> Reply:
        start = time.perf_counter()
        text = "\n".join(message["content"] for message in request.messages)
        rules = (
            rule
            for rule in self._rules
            if rule.prompt in (None, request.prompt)
            and rule.attempt in (None, request.attempt)
            and re.search(rule.match.pattern, text, re.DOTALL)
        )
        rule = next(rules, Rule(finish_reason="abort"))
        if rule.die:
            raise EngineError(f"{self.name}: died, as its script asks, at prompt {request.prompt}")
        await asyncio.sleep(rule.seconds if not rule.hang else 10**9)
        return Reply(
            text=rule.reply,
            finish_reason=rule.finish_reason,
            prompt_tokens=await self.count_tokens(request.messages),
            reply_tokens=len(rule.reply.split()),
            seconds=time.perf_counter() - start,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)
