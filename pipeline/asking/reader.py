"""`Reader`: an engine with all settings that shape its replies, and the requests it is sent; and
what a stage may know of it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from pipeline.asking.reply_health import ReplyWatch
from pipeline.asking.slots import Slots
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import (
    Engine,
    Reply,
    Request,
    storable,
    wait_excluding_suspend,
    without_thinking,
)
from pipeline.core.errors import Problem
from pipeline.core.prompts import Message, Prompt
from pipeline.core.rows import utc_now
from pipeline.core.settings import sha
from pipeline.families.family import Family


@dataclass(frozen=True, slots=True)
class Reader:
    """An engine with all settings that shape its replies, shared by the units of a worker.

    `is_constrained`: replies follow the prompt's Constraint, for prompts that have one.
    """

    engine: Engine
    identity: str  # hash of the engine's identity in a step (model, context, sampling ...)
    is_model: bool
    family: Family
    temperature: float | None  # None: left out of requests
    seed: int
    deadline_seconds: float | None  # None: the engine keeps it
    slots: Slots  # limits the requests in flight of all documents together
    is_constrained: bool = False
    keeps_journal: bool = True  # of the calls of open units
    keeps_prompts: bool = True  # what was sent, in the rows of calls
    waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
    usage: UsageCounters = field(default_factory=UsageCounters)  # of the worker
    watch: ReplyWatch = field(default_factory=ReplyWatch)  # of the worker's first replies
    worker: str | None = None

    def request(self, prompt: Prompt[Any], attempt: int, seed: int) -> Request:
        """The rendered prompt."""
        return Request(
            prompt=prompt.name,
            fields=prompt,
            messages=self.family.render(prompt),
            max_reply_tokens=self.family.max_reply_tokens(type(prompt)),
            constraint=self.family.constraint(prompt) if self.is_constrained else None,
            temperature=self.temperature,
            seed=seed,
            attempt=attempt,
        )

    def seed_of(self, repeat: int, attempt: int, of_unit: int) -> int:
        """The engine's seed. With sampling, repeats, further attempts and attempts at the unit get
        seeds of their own, or they would draw the same reply again."""
        if self.temperature == 0 or (repeat, attempt, of_unit) == (0, 1, 1):
            return self.seed
        retry = [of_unit] if of_unit > 1 else []
        return int(sha([self.seed, repeat, attempt, *retry], 7), 16)

    def sha_of(self, request: Request) -> str:
        """The hash that identifies a request in the calls table."""
        what = [request.messages, request.max_reply_tokens, request.seed, request.attempt]
        legal = [asdict(request.constraint)] if request.constraint else []
        return sha([self.identity, request.prompt, *what, *legal], 16)

    async def generate(self, request: Request) -> tuple[datetime, Reply]:
        """The time the request was sent, and the reply."""
        started_at = utc_now()
        try:
            replying = self.engine.generate(request)
            reply = await wait_excluding_suspend(replying, self.deadline_seconds)
        except TimeoutError:
            seconds = self.deadline_seconds or 0.0
            reply = Reply(text="", finish_reason="abort", seconds=seconds, problem="timeout")
        problems: dict[str, Problem] = {"length": "truncated", "abort": "engine_failed"}
        problem = reply.problem or problems.get(reply.finish_reason)
        return started_at, replace(storable(without_thinking(reply)), problem=problem)


class EngineFacts:
    """The facts that a stage may know of its engine: its name, its context, and tokens as it
    counts them."""

    def __init__(self, reader: Reader | None, stage: str) -> None:
        self._given, self._stage = reader, stage
        self._part_tokens: dict[str, int] = {}
        self._one_at_a_time = asyncio.Lock()  # or questions asked at once would each count a part

    @property
    def _reader(self) -> Reader:
        if self._given is None:
            raise RuntimeError(f"{self._stage} asks a model in a phase without an engine")
        return self._given

    @property
    def engine_name(self) -> str:
        """The engine's name; "" in a phase without an engine."""
        return "" if self._given is None else self._given.engine.name

    @property
    def rater_name(self) -> str:
        """The engine's name and 4 hex of its identity: a model with two settings is two raters."""
        return f"{self._reader.engine.name}-{self._reader.identity[:4]}"

    @property
    def is_model(self) -> bool:
        return self._reader.is_model

    @property
    def context_tokens(self) -> int:
        """The engine's context: the most tokens that prompt and reply may have together."""
        return self._reader.engine.context_tokens

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The reply budget of a prompt, in the engine's tokens."""
        return self._reader.family.max_reply_tokens(prompt)

    async def num_tokens(self, prompt: Prompt[Any]) -> int:
        """The tokens of the rendered prompt, as the engine counts."""
        return await self._reader.engine.count_tokens(self._reader.family.render(prompt))

    async def fits(self, prompt: Prompt[Any], max_reply_tokens: int) -> bool:
        """True if the rendered prompt plus `max_reply_tokens` fit the engine's context."""
        return await self._fits(self._reader.family.render(prompt), max_reply_tokens)

    async def _fits(self, messages: tuple[Message, ...], max_reply_tokens: int) -> bool:
        count_tokens = self._reader.engine.count_tokens
        return await count_tokens(messages) + max_reply_tokens <= self.context_tokens

    async def text_tokens(self, text: str) -> int:
        """The tokens of a text by itself, as the engine counts, without its chat template's."""
        if "" not in self._part_tokens:
            self._part_tokens[""] = await self._in_template("")
        return await self._in_template(text) - self._part_tokens[""]

    async def _in_template(self, text: str) -> int:
        return await self._reader.engine.count_tokens((Message(role="user", content=text),))

    async def part_tokens(self, parts: Iterable[str]) -> int:
        """The sum of `text_tokens` over the parts of a context, each counted by itself, without the
        white space around it, and once for all of the unit's questions."""
        num_tokens = 0
        for part in filter(None, map(str.strip, parts)):
            async with self._one_at_a_time:
                if part not in self._part_tokens:
                    self._part_tokens[part] = await self.text_tokens(part)
            num_tokens += self._part_tokens[part]
        return num_tokens
