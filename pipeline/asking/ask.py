"""`Ask`: a stage's only access to a model. Renders a prompt, checks that it fits the context, sends
it, removes thinking from the reply, parses it and records a Call."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pipeline.asking.reader import Reader
from pipeline.asking.reply_log import ReplyLog, SharedReplies
from pipeline.asking.text_tokens import TextTokens
from pipeline.core.calls import (
    Call,
    CallKey,
    Subject,
    UnitProgress,
    call_key,
    call_row,
    numbered,
    with_sent,
)
from pipeline.core.engine import (
    Reply,
    Request,
    storable,
    wait_excluding_suspend,
    without_thinking,
)
from pipeline.core.errors import Problem
from pipeline.core.prompts import Asked, Message, Prompt
from pipeline.core.rows import utc_now

T = TypeVar("T")


class Ask:
    """Sends the prompts of one stage for one unit, but for those whose replies `log` has.

    `sent_calls` has the calls that were sent, `progress` the progress of the unit.
    """

    def __init__(
        self,
        reader: Reader | None,
        stage: str,
        document_id: str,
        log: ReplyLog,
        repeat: int = 0,
        rank: int = 0,
    ) -> None:
        self._given = reader
        self._repeat = repeat
        self._rank = rank  # priority of the document in this worker: the lowest goes first
        self._stage = stage
        self._document_id = document_id
        self._log = log
        self._calls: list[Call] = []
        self._ahead: dict[str, asyncio.Task[Call | None]] = {}  # by request_sha
        self._readings: dict[CallKey, tuple[str, bool]] = {}  # `read_as` and `is_example`
        self.sent_calls: list[Call] = []
        self._texts = TextTokens(lambda messages: self._reader.engine.count_tokens(messages))
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
        return await self._texts.of(text)

    async def part_tokens(self, parts: Iterable[str]) -> int:
        """The sum of `text_tokens` over the parts of a context, each counted by itself, without the
        white space around it, and once for all of the unit's questions."""
        return await self._texts.of_parts(parts)

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
        call = await self._call(prompt, subject, is_shared)
        self.progress.replied(subject)
        return self._asked(prompt, call)

    def _asked(self, prompt: Prompt[T], call: Call | None) -> Asked[T]:
        """The parsed reply, and its problem."""
        if call is None:
            return Asked(None, "context_overflow", "")
        if call.problem not in (None, "truncated"):
            return Asked(None, call.problem, call.reply)
        value = self._read(prompt, call)
        self._note_reading(prompt, call, value)
        if value is None:
            return Asked(None, call.problem or "unparseable", call.reply)
        return Asked(value, call.problem if prompt.is_whole else None, call.reply)

    def _note_reading(self, prompt: Prompt[T], call: Call, value: T | None) -> None:
        """Keep for the call's row what was read in its reply, and count it in the watch."""
        is_legal = value is not None and prompt.is_legal(value)
        read_as = "unread" if value is None else "legal" if is_legal else "illegal"
        is_example = self._reader.family.is_example(type(prompt), call.reply)
        sent_ahead, key = (call_key(call.request_sha, about) for about in (Subject(), call))
        is_counted = key in self._readings or self._readings.pop(sent_ahead, None) is not None
        self._readings[key] = read_as, is_example
        if not call.is_shared and not is_counted:
            self._reader.watch.replied(replace(call, read_as=read_as, is_example=is_example))

    def _read(self, prompt: Prompt[T], call: Call) -> T | None:
        """The parsed reply; None if it cannot be read."""
        return self._reader.family.read(prompt, call.reply, call.problem == "truncated")

    @property
    def may_read_ahead(self) -> bool:
        """True if most of the engine's slots are free, and the unit was not begun before: a unit
        that goes on takes the replies that it has."""
        reader = self._reader
        return reader.reads_ahead and reader.slots.are_mostly_free and self._log.is_empty

    async def ahead(self, prompt: Prompt[T]) -> Asked[T]:
        """Send a prompt that the unit will probably ask for: it takes the reply then. The call of
        one that it never asks for is about no page and no question."""
        sha = self._reader.sha_of(self._request(prompt, Subject()))
        if sha not in self._ahead or self._ahead[sha].cancelled():
            self._ahead[sha] = asyncio.create_task(self._call(prompt, Subject()))
        return self._asked(prompt, await self._ahead[sha])

    async def _call(
        self, prompt: Prompt[Any], subject: Subject, is_shared: bool = False
    ) -> Call | None:
        """The call that answers the prompt, from the first place that has it; None if it does not
        fit the context.

        A new prompt is rendered and counted while its slot is held, so that those that wait hold no
        text. Replies that the unit has already need no slot.
        """
        call = await self._known(prompt, subject)
        if call is None:
            shared = self._log.shared if is_shared else None  # takes a slot for what it sends
            async with nullcontext() if shared else self._reader.slots.one(self._rank):
                request = self._request(prompt, subject)
                if not await self._fits(request.messages, request.max_reply_tokens):
                    return None
                if repeated := self._repeated(request, subject):
                    return repeated
                call = await self._new(request, subject, shared)
        self._calls.append(call)
        return call

    async def _known(self, prompt: Prompt[Any], subject: Subject) -> Call | None:
        """The unit's own call of the prompt, or the one sent ahead, now about `subject`."""
        if self._log.is_empty and not self._ahead:
            return None
        request = self._request(prompt, subject)
        call = self._found(request, subject)
        return call if call or subject == Subject() else await self._sent_ahead(request, subject)

    async def _sent_ahead(self, request: Request, subject: Subject) -> Call | None:
        sending = self._ahead.pop(self._reader.sha_of(request), None)
        if sending is None or sending.cancelled() or not (call := await sending):
            return None
        self._calls = [other for other in self._calls if other is not call]
        return replace(call, **asdict(subject))

    def _found(self, request: Request, subject: Subject) -> Call | None:
        """The unit's own call of the request, sent with the seed of this or an earlier attempt, or
        ahead by a process that died."""
        is_readable = partial(self._is_readable, request)
        for one in self._with_earlier_seeds(request, subject):
            for about in (subject, Subject()):
                if call := self._log.find(call_key(self._reader.sha_of(one), about), is_readable):
                    return self._with_sent(replace(call, **asdict(subject)), one)
        return None

    async def _new(self, request: Request, subject: Subject, shared: SharedReplies | None) -> Call:
        """The engine's reply, or another document's to the same request."""
        request_sha = self._reader.sha_of(request)
        make = partial(self._made, request, request_sha, subject)
        if shared is None:
            return self._with_sent(await self._log.kept(make), request)
        name = self._shared_name(request, request_sha, subject)
        call = await shared.call(name, make, self._reader.slots.one(self._rank))
        own = (self._document_id, call_key(request_sha, subject))
        is_other = (call.document_id, call_key(request_sha, call)) != own
        call = replace(call, **asdict(subject), is_shared=is_other, document_id=self._document_id)
        return self._with_sent(call, request)

    def _shared_name(self, request: Request, request_sha: str, subject: Subject) -> str:
        """The name of the request's shared reply; another where the previous attempt had one."""
        keys = (call_key(self._reader.sha_of(one), subject)
                for one in self._with_earlier_seeds(request, subject))  # fmt: skip
        is_again = any(key in self._log.earlier for key in keys)
        return f"{request_sha}.{self._log.attempt}" if is_again else request_sha

    def _request(self, prompt: Prompt[Any], subject: Subject) -> Request:
        seed = self._reader.seed_of(self._repeat, subject.attempt, self._log.attempt)
        return self._reader.request(prompt, subject.attempt, seed)

    def _with_earlier_seeds(self, request: Request, subject: Subject) -> Iterator[Request]:
        """The request, then with the seeds of earlier attempts at the unit, if they differ."""
        yield request
        earlier = range(self._log.attempt - 1, 0, -1)
        before = (self._reader.seed_of(self._repeat, subject.attempt, n) for n in earlier)
        for seed in dict.fromkeys(before):
            if seed != request.seed:
                yield replace(request, seed=seed)

    def _is_readable(self, request: Request, call: Call) -> bool:
        return request.fields is None or self._read(request.fields, call) is not None

    def _with_sent(self, call: Call, request: Request) -> Call:
        return with_sent(call, request if self._reader.keeps_prompts else None)

    def _repeated(self, request: Request, subject: Subject) -> Call | None:
        """The first attempt's call, if this one sends the same request without sampling: its reply
        would be the same. (A family's template may not show that it is asked again.)"""
        if request.temperature != 0 or request.attempt == 1:
            return None
        first = call_key(self._reader.sha_of(replace(request, attempt=1)), subject)
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
        """The unit's calls, in order; also what a process that died had sent ahead in vain."""
        asked = {call.request_sha for call in self._calls}
        others = [call for call in self._log.calls if call.request_sha not in asked]
        in_vain = [c for c in others if call_key("", c) == call_key("", Subject())]
        return numbered(map(self._with_reading, [*self._calls, *in_vain]))

    def _with_reading(self, call: Call) -> Call:
        reading = self._readings.get(call_key(call.request_sha, call))
        return replace(call, read_as=reading[0], is_example=reading[1]) if reading else call

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
