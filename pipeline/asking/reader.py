"""`Reader`: an engine with all settings that shape its replies; and a worker's limits: requests in
flight, and the text of documents in flight."""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, Literal

from pipeline.asking.reply_health import ReplyWatch
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import Engine, EngineSettings, Reply, Request, without_thinking
from pipeline.core.errors import CommandError, Problem, StartError, StorageError, contained
from pipeline.core.prompts import Prompt
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
_PROBLEMS: dict[str, Problem] = {"length": "truncated", "abort": "engine_failed"}


class Slots:
    """`size` slots; a free one goes to the waiting request of lowest `rank`, then by arrival. None
    is given once storage refuses a reply for good: further replies could not be kept."""

    def __init__(self, size: int) -> None:
        self._free = size
        self.refusal: StorageError | None = None
        self._arrivals = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def one(self, rank: int) -> AsyncIterator[None]:
        """Hold one slot inside the context. Raises the StorageError of an earlier holder."""
        if self._free:  # a slot is free only if no request waits
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # the slot was handed over just before
                    self._leave()
                raise
        try:
            if self.refusal:
                raise self.refusal
            yield
        except StorageError as error:
            self.refusal = error
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Capacity:
    """A limit on the total weight in flight, first come, first served. A document heavier than the
    limit is admitted alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._queue = asyncio.Lock()  # fair
        self._released = asyncio.Event()

    @asynccontextmanager
    async def held(self, weight: int) -> AsyncIterator[None]:
        weight = min(weight, self._size)
        async with self._queue:
            while self._taken + weight > self._size:
                self._released.clear()
                await self._released.wait()
            self._taken += weight
        try:
            yield
        finally:
            self._taken -= weight
            self._released.set()


@dataclass(frozen=True, slots=True)
class Reader:
    """An engine with all settings that shape its replies, shared by the units of a worker."""

    engine: Engine
    identity: str  # hash of the engine's identity in a step (model, context, sampling ...)
    is_model: bool
    family: Family
    temperature: float | None  # None: left out of requests
    seed: int
    deadline_seconds: float | None  # None: the engine keeps it
    slots: Slots  # limits the requests in flight of all documents together
    is_constrained: bool = False  # replies follow the prompt's Constraint, if it has one
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
        """The request by its hash, for the unit's attempt `of_unit`, then for earlier attempts. If
        replies are sampled, each repeat, further attempt and retry of the unit gets its own seed,
        or it would draw the same reply again."""
        seeds: dict[int, None] = {}  # in order
        for number in range(of_unit, 0, -1):
            seed = self.seed
            if self.temperature != 0 and (repeat, attempt, number) != (0, 1, 1):
                retry = [number] if number > 1 else []
                seed = int(sha([self.seed, repeat, attempt, *retry], 7), 16)
            seeds[seed] = None
        request = self.request(prompt, attempt, next(iter(seeds)))
        requests = (replace(request, seed=seed) for seed in seeds)
        return {self.sha_of(request): request for request in requests}

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
        problem = reply.problem or _PROBLEMS.get(reply.finish_reason)
        return started_at, replace(without_thinking(reply), problem=problem)


def num_slots(settings: EngineSettings) -> int:
    """The most requests in flight at one engine."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


def is_constrained(settings: EngineSettings, reply_format: ReplyFormat) -> bool:
    """True if the engine is given the legal replies (structured output)."""
    return reply_format != "free" and settings.takes_constraints


async def start_reader(
    settings: EngineSettings, family: Family, reply_format: ReplyFormat
) -> Reader:
    """Start an engine. Raises StartError if it cannot start, and if a plugin's `start` raises
    anything or returns no engine."""
    if is_ours(type(settings)):
        return reader_of(await settings.start(), settings, family, reply_format)
    start = f"engine={settings.name}: {type(settings).__name__}.start"
    with contained(CommandError) as raised:
        engine = await settings.start()
    if raised.error:
        raise StartError(f"{start}: {raised.line()}; fix it")
    if missing := [name for name in _NEEDED if not hasattr(engine, name)]:
        raise StartError(f"{start} returned {type(engine).__name__}, without {missing[0]}")
    return reader_of(engine, settings, family, reply_format)


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
            may_constrain=reply_format == "free" and settings.takes_constraints,
            of_engine=server.findings if server else None,
        ),
        keeps_journal=settings.keeps_journal,
        keeps_prompts=settings.keep_prompts,
        waiting_for=server.waiting_for if server else str,
    )
