"""`Ask`: a stage's only access to a model. Renders a prompt, checks that it fits the context, sends
it, removes thinking from the reply, parses it and records a Call."""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pipeline.asking.shared_replies import SharedReplies
from pipeline.asking.slots import Slots
from pipeline.core.calls import CallKey, Replay, Subject, call_key, call_row, numbered, reply_of
from pipeline.core.engine import Engine, Reply, Request
from pipeline.core.errors import Problem
from pipeline.core.prompts import Asked, Message, Prompt
from pipeline.core.reply_forms import read_reply
from pipeline.core.rows import Call, utc_now
from pipeline.core.settings import sha
from pipeline.core.time_limit import wait_excluding_suspend
from pipeline.core.unit_progress import UnitProgress, UsageCounters
from pipeline.families.family import Family

T = TypeVar("T")
_THINKING_TAG = re.compile("</?think>")
_HALF = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reader:
    """An engine with all settings that shape its replies, shared by the units of a worker.

    `is_constrained`: replies follow the prompt's Constraint, for prompts that have one.
    """

    engine: Engine
    identity: str  # hash of the engine's identity in a step (model, context, sampling ...)
    is_model: bool
    family: Family
    temperature: float
    seed: int
    deadline_seconds: float | None  # None: the engine keeps it
    slots: Slots  # limits the requests in flight of all documents together
    is_constrained: bool = False
    keeps_journal: bool = True  # of the calls of open units
    waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
    shared: SharedReplies | None = None  # replies shared by documents of the step
    usage: UsageCounters = field(default_factory=UsageCounters)  # of the worker
    worker: str | None = None


class Ask:
    """Sends the prompts of one stage for one unit; calls that `replay` holds are replayed instead.

    `sent_calls` has the calls that were sent, `progress` the progress of the unit.
    """

    def __init__(
        self,
        reader: Reader | None,
        stage: str,
        document_id: str,
        replay: Replay,
        repeat: int = 0,
        rank: int = 0,
    ) -> None:
        self._given = reader
        self._repeat = repeat
        self._rank = rank  # priority of the document in this worker: the lowest goes first
        self._stage = stage
        self._document_id = document_id
        self._replay = replay
        self._by_key = {call_key(call.request_sha, call): call for call in replay.calls}
        self._calls: list[Call] = []
        self.sent_calls: list[Call] = []
        self.progress = UnitProgress()

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

    async def num_tokens(self, prompt: Prompt[Any]) -> int:
        """The tokens of the rendered prompt, as the engine counts."""
        return await self._reader.engine.count_tokens(self._reader.family.render(prompt))

    async def text_tokens(self, text: str) -> int:
        """The tokens of a text by itself, as the engine counts, without its chat template's."""
        count = self._reader.engine.count_tokens
        whole, around = (Message(role="user", content=content) for content in (text, ""))
        return await count((whole,)) - await count((around,))

    async def fits(self, prompt: Prompt[Any], max_reply_tokens: int) -> bool:
        """True if the rendered prompt plus `max_reply_tokens` fit the engine's context."""
        return await self._fits(self._reader.family.render(prompt), max_reply_tokens)

    def max_reply_tokens(self, prompt: type[Prompt[Any]]) -> int:
        """The reply budget of a prompt, in the engine's tokens."""
        return self._reader.family.max_reply_tokens(prompt)

    async def _fits(self, messages: tuple[Message, ...], max_reply_tokens: int) -> bool:
        engine = self._reader.engine
        return await engine.count_tokens(messages) + max_reply_tokens <= engine.context_tokens

    async def __call__(
        self, prompt: Prompt[T], subject: Subject, is_shared: bool = False
    ) -> Asked[T]:
        """Send `prompt` and parse the reply.

        `is_shared`: other documents may send the same request, and the step sends it only once.
        Problems: see `Asked`. Raises EngineError where the engine is dead.
        """
        reply = await self._reply(self._request(prompt, subject), subject, is_shared)
        self.progress.replied(subject)
        if reply.problem not in (None, "truncated"):
            return Asked(None, reply.problem, reply.text)
        form = self._reader.family.form(type(prompt))
        value = read_reply(prompt, form, reply.text, is_cut=reply.problem is not None)
        if value is None:
            return Asked(None, reply.problem or "unparseable", reply.text)
        return Asked(value, reply.problem if prompt.is_whole else None, reply.text)

    async def _reply(self, request: Request, subject: Subject, is_shared: bool) -> Reply:
        if not await self._fits(request.messages, request.max_reply_tokens):
            return Reply(text="", finish_reason="abort", problem="context_overflow")
        request_sha = self.sha_of(request)
        if repeated := self._repeated(request, subject):
            return reply_of(repeated)
        recorded = self._known(request, request_sha, subject)
        if recorded is not None:
            self._calls.append(recorded)
            return reply_of(recorded)
        made = partial(self._made, request, request_sha, subject)
        # Held until the call is kept: a process that dies loses no more calls than it has slots.
        slot = self._reader.slots.one(self._rank)
        shared = self._reader.shared
        if is_shared and shared is not None:
            is_again = any(
                key in self._replay.earlier for key in self._keys(request, request_sha, subject)
            )
            name = f"{request_sha}.{self._replay.attempt}" if is_again else request_sha
            call = await shared.call(name, made, slot)
            own = (self._document_id, call_key(request_sha, subject))
            is_ours = (call.document_id, call_key(request_sha, call)) == own
            call = replace(call, **asdict(subject), is_shared=not is_ours)
            call = replace(call, document_id=self._document_id)
        else:
            async with slot:
                call = await made()
                if self._replay.keep:
                    await self._replay.keep(call)
        self._calls.append(call)
        return reply_of(call)

    def _known(self, request: Request, request_sha: str, subject: Subject) -> Call | None:
        """The recorded call, or that of the previous attempt if its reply was good."""
        for key in self._keys(request, request_sha, subject):
            if recorded := self._by_key.get(key):
                return recorded
            if good := self._replay.earlier.good(key, partial(self._is_readable, request)):
                return good
        return None

    def _keys(self, request: Request, request_sha: str, subject: Subject) -> Iterator[CallKey]:
        """The keys of the request with the seeds of this and of earlier attempts at the unit."""
        yield call_key(request_sha, subject)
        for earlier in self._of_earlier_attempts(request, subject):
            yield call_key(self.sha_of(earlier), subject)

    def _of_earlier_attempts(self, request: Request, subject: Subject) -> Iterator[Request]:
        """The request with the seeds of earlier attempts at the unit, if they differ."""
        before = (
            self._seed(subject.attempt, number) for number in range(self._replay.attempt - 1, 0, -1)
        )
        for seed in dict.fromkeys(before):
            if seed != request.seed:
                yield replace(request, seed=seed)

    def _is_readable(self, request: Request, call: Call) -> bool:
        if request.fields is None:
            return True
        form = self._reader.family.form(type(request.fields))
        return read_reply(request.fields, form, call.reply, is_cut=False) is not None

    def _repeated(self, request: Request, subject: Subject) -> Call | None:
        """The first attempt's call, if this one sends the same request without sampling: its reply
        would be the same. (A family's template may not show the correction in the prompt.)"""
        if request.temperature > 0 or request.attempt == 1:
            return None
        first = call_key(self.sha_of(replace(request, attempt=1)), subject)
        return next(
            (call for call in self._calls if call_key(call.request_sha, call) == first), None
        )

    async def _made(self, request: Request, request_sha: str, subject: Subject) -> Call:
        started_at, reply = await self._generate(request)
        call = call_row(
            reply,
            request,
            subject,
            request_sha=request_sha,
            document_id=self._document_id,
            stage=self._stage,
            engine=self._reader.engine.name,
            started_at=started_at,
            worker=self._reader.worker,
        )
        self._reader.usage.called(call)
        self.sent_calls.append(call)
        return call

    def calls(self) -> tuple[Call, ...]:
        """The unit's calls, in order."""
        return numbered(self._calls)

    def _request(self, prompt: Prompt[Any], subject: Subject) -> Request:
        family = self._reader.family
        form = family.form(type(prompt)) if self._reader.is_constrained else None
        return Request(
            prompt=prompt.name,
            fields=prompt,
            messages=family.render(prompt),
            max_reply_tokens=family.max_reply_tokens(type(prompt)),
            constraint=None if form is None else prompt.legal(form),
            temperature=self._reader.temperature,
            seed=self._seed(subject.attempt, self._replay.attempt),
            attempt=subject.attempt,
        )

    def _seed(self, attempt: int, of_unit: int) -> int:
        """The engine's seed. With sampling, repeats, further attempts and attempts at the unit get
        seeds of their own, or they would draw the same reply again."""
        seed = self._reader.seed
        if self._reader.temperature == 0 or (self._repeat, attempt, of_unit) == (0, 1, 1):
            return seed
        retry = [of_unit] if of_unit > 1 else []
        return int(sha([seed, self._repeat, attempt, *retry], 7), 16)

    def sha_of(self, request: Request) -> str:
        """The hash that identifies a request in the calls table."""
        what = [request.messages, request.max_reply_tokens, request.seed, request.attempt]
        legal = [asdict(request.constraint)] if request.constraint else []
        return sha([self._reader.identity, request.prompt, *what, *legal], 16)

    async def _generate(self, request: Request) -> tuple[datetime, Reply]:
        """The time the request was sent, and the reply. Called while its slot is held, so that
        waiting for one does not count."""
        started_at = utc_now()
        try:
            replying = self._reader.engine.generate(request)
            reply = await wait_excluding_suspend(replying, self._reader.deadline_seconds)
        except TimeoutError:
            seconds = self._reader.deadline_seconds or 0.0
            reply = Reply(text="", finish_reason="abort", seconds=seconds, problem="timeout")
        problems: dict[str, Problem] = {"length": "truncated", "abort": "engine_failed"}
        problem = reply.problem or problems.get(reply.finish_reason)
        return started_at, replace(storable(without_thinking(reply)), problem=problem)


def storable(reply: Reply) -> Reply:
    """The reply with half surrogate pairs, which no file can hold, as U+FFFD."""
    text, thinking = _HALF.sub("\ufffd", reply.text), _HALF.sub("\ufffd", reply.thinking or "")
    return replace(reply, text=text, thinking=thinking or reply.thinking)


def without_thinking(reply: Reply) -> Reply:
    """Move `<think>...</think>` from the reply's text to `thinking`.

    The text is what follows the last `</think>`, even without an opening tag, as chat templates
    write `<think>` themselves. A `<think>` after that did not end, and the text is empty.
    """
    tags = list(_THINKING_TAG.finditer(reply.text))
    if not tags:
        return reply
    end = tags[-1].end() if tags[-1][0] == "</think>" else len(reply.text)
    thoughts = [reply.thinking or "", *_THINKING_TAG.split(reply.text[:end])]
    thinking = "\n".join(thought.strip() for thought in thoughts if thought.strip())
    return replace(reply, text=reply.text[end:].strip(), thinking=thinking or None)
