"""`Ask`: a stage's only access to a model; and what it needs: a `Reader`, which is an engine with
all settings that shape its replies, and the `Capacity` that limits the requests in flight."""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from pipeline.asking.replies import Replies, Wanted
from pipeline.core.calls import (
    Call,
    Subject,
    UnitProgress,
    UsageCounters,
    call_key,
    numbered,
    with_sent,
)
from pipeline.core.engine import Engine, EngineSettings, Reply, Request, without_thinking
from pipeline.core.errors import CommandError, Problem, StartError, StorageError, contained
from pipeline.core.prompts import Asked, Message, Prompt
from pipeline.core.rows import utc_now
from pipeline.core.settings import sha
from pipeline.engines import extractive, scripted, vllm  # noqa: F401  # found by name
from pipeline.engines.openai import OpenAIEngine
from pipeline.families.family import Family

T = TypeVar("T")

# Requests admitted per sequence of the engine; oversubscription keeps its batch full.
_SLOTS_PER_SEQUENCE = 1.25
_NEEDED = ("name", "context_tokens", "generate", "count_tokens")  # of an engine
_PROBLEMS: dict[str, Problem] = {"length": "truncated", "abort": "engine_failed"}
_OF_REPLY = (  # columns of a call that a Reply has as fields
    "prompt_tokens", "cached_tokens", "reply_tokens", "finish_reason", "seconds", "thinking",
    "answered_by", "problem",
)  # fmt: skip


class Capacity:
    """A limit on the total weight in flight. Waiters are admitted by `rank`, the lowest first, then
    by arrival; one that is heavier than the limit is admitted alone. After a StorageError inside,
    none is admitted: what comes later could not be stored either."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._arrivals = count()
        self._waiting: list[tuple[int, int, int, asyncio.Future[None]]] = []
        self.refusal: StorageError | None = None

    @asynccontextmanager
    async def held(self, weight: int = 1, rank: int = 0) -> AsyncIterator[None]:
        """Wait for the weight and hold it inside the context. Raises the StorageError of an earlier
        holder."""
        weight = min(weight, self._size)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), weight, turn))
        try:
            self._admit()
            await turn
            if self.refusal:
                raise self.refusal
            yield
        except StorageError as error:
            self.refusal = error
            raise
        finally:
            # A task may be cancelled while it waits, and also right after it was admitted.
            if turn.done() and not turn.cancelled():
                self._free += weight
            self._admit()

    def _admit(self) -> None:
        while self._waiting:
            _, _, weight, turn = self._waiting[0]
            if not turn.cancelled():
                if weight > self._free:
                    return
                self._free -= weight
                turn.set_result(None)
            heapq.heappop(self._waiting)


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
    slots: Capacity  # limits the requests in flight of all documents together
    is_constrained: bool = False  # replies follow the prompt's Constraint, if it has one
    keeps_journal: bool = True  # of the calls of open units
    keeps_prompts: bool = True  # requests, in the rows of calls
    waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
    findings: Mapping[str, str] = field(default_factory=dict)  # lines about the engine's server
    usage: UsageCounters = field(default_factory=UsageCounters)  # of the worker
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

    def sha_of(self, request: Request) -> str:
        """The hash that identifies a request in the calls table."""
        what = [request.messages, request.max_reply_tokens, request.seed, request.attempt]
        legal = [asdict(request.constraint)] if request.constraint else []
        return sha([self.identity, request.prompt, *what, *legal], 16)


def num_slots(settings: EngineSettings) -> int:
    """The most requests in flight at one engine."""
    return math.ceil(settings.sequences * _SLOTS_PER_SEQUENCE)


async def start_reader(settings: EngineSettings, family: Family, is_constrained: bool) -> Reader:
    """Start an engine. Raises StartError if it cannot start, and if `start` raises anything or
    returns no engine."""
    start = f"engine={settings.name}: {type(settings).__name__}.start"
    with contained(CommandError) as raised:
        engine = await settings.start()
    if raised.error:
        raise StartError(f"{start}: {raised.line()}; fix it")
    if missing := [name for name in _NEEDED if not hasattr(engine, name)]:
        raise StartError(f"{start} returned {type(engine).__name__}, without {missing[0]}")
    return reader_of(engine, settings, family, is_constrained)


def reader_of(
    engine: Engine, settings: EngineSettings, family: Family, is_constrained: bool
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
        slots=Capacity(num_slots(settings)),
        is_constrained=is_constrained,
        keeps_journal=settings.keeps_journal,
        keeps_prompts=settings.keep_prompts,
        waiting_for=server.waiting_for if server else str,
        findings=server.findings if server else {},
    )


class ReaderFacts:
    """What a stage may know of its reader: the engine's name, its context, its counts of tokens.
    `reader` is None in a phase without an engine."""

    def __init__(self, reader: Reader | None, stage: str) -> None:
        self._reader_or_none, self._stage = reader, stage
        self._part_tokens: dict[str, int] = {}
        self._counting = asyncio.Lock()  # without it concurrent questions count a part again

    @property
    def _reader(self) -> Reader:
        if self._reader_or_none is None:
            raise RuntimeError(f"{self._stage} asks a model in a phase without an engine")
        return self._reader_or_none

    @property
    def engine_name(self) -> str:
        """The engine's name; "" in a phase without an engine."""
        return self._reader_or_none.engine.name if self._reader_or_none else ""

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
        return await self.num_tokens(prompt) + max_reply_tokens <= self.context_tokens

    async def text_tokens(self, text: str) -> int:
        """The engine's tokens of a text by itself, without those of the chat template."""
        count_tokens = self._reader.engine.count_tokens
        if "" not in self._part_tokens:
            self._part_tokens[""] = await count_tokens((Message(role="user", content=""),))
        of_message = await count_tokens((Message(role="user", content=text),))
        return of_message - self._part_tokens[""]

    async def part_tokens(self, parts: Iterable[str]) -> int:
        """The sum of `text_tokens` over the stripped parts of a context. Each is counted once for
        all of the unit's questions."""
        num_tokens = 0
        for part in filter(None, map(str.strip, parts)):
            async with self._counting:
                if part not in self._part_tokens:
                    self._part_tokens[part] = await self.text_tokens(part)
            num_tokens += self._part_tokens[part]
        return num_tokens


class Ask(ReaderFacts):
    """Sends the prompts of one stage for one unit, unless `replies` has the reply already.

    `rank`: the priority of the document in its worker; the lowest goes first. `sent_calls` has the
    calls that were sent, `progress` the progress of the unit.
    """

    def __init__(
        self,
        reader: Reader | None,
        stage: str,
        document_id: str,
        replies: Replies,
        repeat: int = 0,
        rank: int = 0,
    ) -> None:
        super().__init__(reader, stage)
        self._document_id, self._replies = document_id, replies
        self._repeat, self._rank = repeat, rank
        self._calls: list[Call] = []
        self.sent_calls: list[Call] = []
        self.progress = UnitProgress()

    async def __call__(
        self, prompt: Prompt[T], subject: Subject, is_shared: bool = False
    ) -> Asked[T]:
        """Send `prompt` and parse the reply.

        `is_shared`: other documents may send the same request, and the step sends it only once.
        Problems: see `Asked`. Raises EngineError if the engine is dead.
        """
        reader = self._reader
        first_call: Call | None = None
        if subject.attempt > 1 and reader.temperature == 0:
            # Without sampling the same request gets the same reply. The request is the same if the
            # family's template does not mention the attempt.
            sha_of_first = reader.sha_of(reader.request(prompt, 1, reader.seed))
            first = call_key(sha_of_first, subject)
            first_call = next((c for c in self._calls if call_key(c.request_sha, c) == first), None)
        call = first_call
        if call is None:
            call = await self._call(prompt, subject, is_shared)
            self.progress.replied(subject)
        if call is None:
            return Asked(None, "context_overflow", "")
        value, has_reply = None, call.problem in (None, "truncated")
        if has_reply:
            value = reader.family.read(prompt, call.reply, call.problem == "truncated")
        if first_call is None:
            if has_reply:
                is_legal = value is not None and prompt.is_legal(value)
                read_as = "unread" if value is None else "legal" if is_legal else "illegal"
                is_example = reader.family.is_example(type(prompt), call.reply)
                call = replace(call, read_as=read_as, is_example=is_example)
            self._calls.append(call)
        if value is None:
            return Asked(None, call.problem or "unparseable", call.reply)
        return Asked(value, call.problem if prompt.is_whole else None, call.reply)

    async def _call(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Call | None:
        """The call that answers the prompt; None if it does not fit the context."""
        replies = self._replies
        if not replies.calls and not replies.earlier and not is_shared:
            return await self._send(prompt, subject, is_shared)
        wanted = self._wanted(prompt, subject, is_shared)
        async with replies.locked(wanted):
            if (call := await replies.find(wanted)) is None:
                return await self._send(prompt, subject, is_shared)
        sent = wanted.requests[call.request_sha] if self._reader.keeps_prompts else None
        return with_sent(call, sent)

    async def _send(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Call | None:
        """Render, count and send the prompt in a slot: waiting prompts hold no text, and the wait
        does not count as the call's time. The slot is held until the call is kept, so that a crash
        loses few calls."""
        reader = self._reader
        async with reader.slots.held(rank=self._rank):
            wanted = self._wanted(prompt, subject, is_shared)
            request_sha, request = next(iter(wanted.requests.items()))
            num_tokens = await reader.engine.count_tokens(request.messages)
            if num_tokens + request.max_reply_tokens > self.context_tokens:
                return None
            started_at, seconds = utc_now(), reader.deadline_seconds
            try:
                async with asyncio.timeout(seconds):
                    reply = without_thinking(await reader.engine.generate(request))
            except TimeoutError:
                reply = Reply(
                    text="", finish_reason="abort", seconds=seconds or 0.0, problem="timeout"
                )
            reply = replace(reply, problem=reply.problem or _PROBLEMS.get(reply.finish_reason))
            call = Call(
                **asdict(subject),
                **{name: getattr(reply, name) for name in _OF_REPLY},
                call_index=0,  # until the unit is done
                prompt=request.prompt,
                request_sha=request_sha,
                reply=reply.text,
                document_id=self._document_id,
                stage=self._stage,
                engine=self.engine_name,
                started_at=started_at,
                worker=reader.worker,
            )
            reader.usage.called(call)
            self.sent_calls.append(call)
            call = await self._replies.keep(call, wanted)
            return with_sent(call, request if reader.keeps_prompts else None)

    def _wanted(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Wanted:
        """The reply that is needed, by the request of this attempt at the unit, then by those of
        earlier attempts. If replies are sampled, each repeat, further attempt of the subject and
        retry of the unit has its own seed: the same one would draw the same reply again."""
        reader, repeat, attempt = self._reader, self._repeat, subject.attempt
        seeds: dict[int, None] = {}  # in order
        for of_unit in range(self._replies.attempt, 0, -1):
            seed = reader.seed
            if reader.temperature != 0 and (repeat, attempt, of_unit) != (0, 1, 1):
                retry = [of_unit] if of_unit > 1 else []
                seed = int(sha([reader.seed, repeat, attempt, *retry], 7), 16)
            seeds[seed] = None
        request = reader.request(prompt, attempt, next(iter(seeds)))
        requests = (replace(request, seed=seed) for seed in seeds)
        return Wanted(
            requests={reader.sha_of(request): request for request in requests},
            subject=subject,
            document_id=self._document_id,
            is_shared=is_shared,
            is_readable=lambda reply: reader.family.read(prompt, reply, False) is not None,
        )

    def calls(self) -> tuple[Call, ...]:
        return numbered(self._calls)
