"""`Reader`: an engine with all settings that shape its replies; the facts about it that a stage may
use; and starting the engine of a settings section."""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from pipeline.asking.reply_health import ReplyWatch
from pipeline.asking.slots import Slots
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import (
    Engine,
    EngineSettings,
    Reply,
    Request,
    storable,
    without_thinking,
)
from pipeline.core.errors import CommandError, Problem, StartError, contained
from pipeline.core.prompts import Message, Prompt
from pipeline.core.registry import is_ours
from pipeline.core.rows import utc_now
from pipeline.core.settings import sha
from pipeline.engines import extractive, scripted, vllm  # noqa: F401  # found by name
from pipeline.engines.openai import OpenAIEngine
from pipeline.families.family import Family

ReplyFormat = Literal["auto", "free", "constrained"]
"""`auto`: constrained where the engine can enforce it."""

# Requests admitted per sequence of the engine; oversubscription keeps its batch full.
_SLOTS_PER_SEQUENCE = 1.25
_NEEDED = ("name", "context_tokens", "generate", "count_tokens")  # of an engine


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
    keeps_prompts: bool = True  # requests, in the rows of calls
    waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
    usage: UsageCounters = field(default_factory=UsageCounters)  # of the worker
    watch: ReplyWatch = field(default_factory=ReplyWatch)  # of the worker's first replies
    worker: str | None = None

    def request(self, prompt: Prompt[Any], attempt: int, seed: int) -> Request:
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

    def requests(
        self, prompt: Prompt[Any], repeat: int, attempt: int, of_unit: int
    ) -> dict[str, Request]:
        """The request by its hash, for the unit's attempt `of_unit`, then for earlier attempts.
        They differ if replies are sampled."""
        seeds = [self.seed_of(repeat, attempt, number) for number in range(of_unit, 0, -1)]
        first = self.request(prompt, attempt, seeds[0])
        earlier = (replace(first, seed=seed) for seed in dict.fromkeys(seeds[1:]))
        return {self.sha_of(request): request for request in (first, *earlier)}

    def seed_of(self, repeat: int, attempt: int, of_unit: int) -> int:
        """The engine's seed. With sampling, each repeat, further attempt and retry of the unit gets
        its own seed, or it would draw the same reply again."""
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
        """Send a request; returns the time when it was sent, in UTC, and the reply."""
        started_at = utc_now()
        try:
            async with asyncio.timeout(self.deadline_seconds):
                reply = await self.engine.generate(request)
        except TimeoutError:
            seconds = self.deadline_seconds or 0.0
            reply = Reply(text="", finish_reason="abort", seconds=seconds, problem="timeout")
        problems: dict[str, Problem] = {"length": "truncated", "abort": "engine_failed"}
        problem = reply.problem or problems.get(reply.finish_reason)
        return started_at, replace(storable(without_thinking(reply)), problem=problem)


class EngineFacts:
    """The facts that a stage may use about its engine: name, context, and token counts."""

    def __init__(self, reader: Reader | None, stage: str) -> None:
        self._given, self._stage = reader, stage
        self._part_tokens: dict[str, int] = {}
        self._one_at_a_time = asyncio.Lock()  # or concurrent questions would count a part again

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
        """The most tokens that prompt and reply may have together."""
        return self._reader.engine.context_tokens

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The reply budget of a prompt, in the engine's tokens."""
        return self._reader.family.max_reply_tokens(prompt)

    async def num_tokens(self, prompt: Prompt[Any]) -> int:
        """The tokens of the rendered prompt, counted by the engine."""
        return await self._reader.engine.count_tokens(self._reader.family.render(prompt))

    async def fits(self, prompt: Prompt[Any], max_reply_tokens: int) -> bool:
        return await self._fits(self._reader.family.render(prompt), max_reply_tokens)

    async def _fits(self, messages: tuple[Message, ...], max_reply_tokens: int) -> bool:
        count_tokens = self._reader.engine.count_tokens
        return await count_tokens(messages) + max_reply_tokens <= self.context_tokens

    async def text_tokens(self, text: str) -> int:
        """The engine's tokens of a text by itself, without those of the chat template."""
        if "" not in self._part_tokens:
            self._part_tokens[""] = await self._in_template("")
        return await self._in_template(text) - self._part_tokens[""]

    async def _in_template(self, text: str) -> int:
        return await self._reader.engine.count_tokens((Message(role="user", content=text),))

    async def part_tokens(self, parts: Iterable[str]) -> int:
        """The sum of `text_tokens` over the stripped parts of a context. Each is counted once for
        all of the unit's questions."""
        num_tokens = 0
        for part in filter(None, map(str.strip, parts)):
            async with self._one_at_a_time:
                if part not in self._part_tokens:
                    self._part_tokens[part] = await self.text_tokens(part)
            num_tokens += self._part_tokens[part]
        return num_tokens


def num_slots(settings: EngineSettings) -> int:
    """The most requests in flight at one engine."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def is_constrained(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if the engine is given the legal replies (structured output)."""
    return reply_format != "free" and settings.takes_constraints


def may_constrain(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if replies are free and reply_format=constrained would change that."""
    return reply_format == "free" and settings.takes_constraints


async def start_reader(
    settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """Start an engine and return its Reader. Raises StartError if it cannot start."""
    return reader_of(await started(settings), settings, family, reply_format)


async def started(settings: EngineSettings) -> Engine:
    """Start the engine. Raises StartError, for a plugin's engine whatever its `start` raises, and
    if it returns no engine."""
    if is_ours(type(settings)):
        return await settings.start()
    place = f"engine={settings.name}: {type(settings).__name__}.start"
    with contained(CommandError) as raised:
        engine = await settings.start()
        if missing := [name for name in _NEEDED if not hasattr(engine, name)]:
            raise StartError(f"{place} returned {type(engine).__name__}, without {missing[0]}")
        return engine
    raise StartError(f"{place}: {raised.line()}; fix it")


def reader_of(
    engine: Engine, settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    server = engine if isinstance(engine, OpenAIEngine) else None
    return Reader(
        engine=engine,
        identity=sha(settings.identity(), 16),
        is_model=settings.is_model,
        family=family,
        temperature=settings.temperature,
        seed=settings.seed if settings.temperature != 0 else 0,
        deadline_seconds=None if settings.keeps_deadline else settings.deadline_seconds,
        slots=Slots(num_slots(settings)),
        is_constrained=is_constrained(settings, reply_format),
        watch=ReplyWatch(
            may_constrain(settings, reply_format), server.findings if server else None
        ),
        keeps_journal=settings.keeps_journal,
        keeps_prompts=settings.keep_prompts,
        waiting_for=server.waiting_for if server else str,
    )
