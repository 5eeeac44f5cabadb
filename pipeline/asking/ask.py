"""`Ask`: a stage's only access to a model. Renders a prompt, checks that it fits the context, looks
for a reply that there is already or sends it, parses the reply and records a Call."""

from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

from pipeline.asking.known_replies import Replies
from pipeline.asking.reader import EngineFacts, Reader
from pipeline.core.calls import Call, Subject, UnitProgress, call_key, call_row, numbered, with_sent
from pipeline.core.engine import Request
from pipeline.core.prompts import Asked, Prompt

T = TypeVar("T")
_WITH_A_REPLY = (None, "truncated")  # problems of calls whose reply is read


class Ask(EngineFacts):
    """Sends the prompts of one stage for one unit, but for those whose `replies` there are.

    `rank`: the priority of the document in its worker, the lowest goes first. `sent_calls` has the
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
        self._document_id = document_id
        self._replies, self._repeat, self._rank = replies, repeat, rank
        self._calls: list[Call] = []
        self.sent_calls: list[Call] = []
        self.progress = UnitProgress()

    async def __call__(
        self, prompt: Prompt[T], subject: Subject, is_shared: bool = False
    ) -> Asked[T]:
        """Send `prompt` and parse the reply.

        `is_shared`: other documents may send the same request, and the step sends it only once.
        Problems: see `Asked`. Raises EngineError where the engine is dead.
        """
        call = self._repeated(prompt, subject)
        if call is not None:
            return self._asked(prompt, call, self._read(prompt, call))
        call = await self._call(prompt, subject, is_shared)
        self.progress.replied(subject)
        if call is None:
            return Asked(None, "context_overflow", "")
        value = self._read(prompt, call)
        self._calls.append(self._with_reading(prompt, call, value))
        return self._asked(prompt, call, value)

    def _repeated(self, prompt: Prompt[Any], subject: Subject) -> Call | None:
        """The first attempt's call, if this one sends the same request without sampling: its reply
        would be the same. (A family's template may not show that it is asked again.)"""
        if subject.attempt == 1 or self._reader.temperature != 0:
            return None
        request = self._reader.request(prompt, 1, self._reader.seed)
        first = call_key(self._reader.sha_of(request), subject)
        return next((c for c in self._calls if call_key(c.request_sha, c) == first), None)

    async def _call(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Call | None:
        """The call that answers the prompt; None if it does not fit the context.

        A new prompt is rendered and counted while its slot is held, so that those that wait hold no
        text. Replies that the unit has already need no slot, and shared ones take one themselves.
        """
        reader, replies = self._reader, self._replies
        if not replies.is_empty:
            requests = self._requests(prompt, subject)
            own_keys = (call_key(sha, subject) for sha in requests)
            if found := replies.find(own_keys, partial(self._is_readable, prompt)):
                return self._with_sent(found, requests[found.request_sha])
        is_shared, slot = is_shared and replies.shared is not None, reader.slots.one(self._rank)
        async with nullcontext() if is_shared else slot:
            requests = self._requests(prompt, subject)
            sha, request = next(iter(requests.items()))
            if not await self._fits(request.messages, request.max_reply_tokens):
                return None
            keys = [call_key(one, subject) for one in requests]
            make = partial(self._send, request, sha, subject)
            call = await replies.ask(keys, make, slot, is_shared)
        if is_shared:
            own = (self._document_id, keys[0])
            is_other = (call.document_id, call_key(sha, call)) != own
            call = replace(
                call, **asdict(subject), is_shared=is_other, document_id=self._document_id
            )
        return self._with_sent(call, request)

    def _requests(self, prompt: Prompt[Any], subject: Subject) -> dict[str, Request]:
        """The request by its hash, then those with the seeds of earlier attempts at the unit."""
        reader, attempts = self._reader, range(self._replies.attempt, 0, -1)
        seeds = [reader.seed_of(self._repeat, subject.attempt, number) for number in attempts]
        first = reader.request(prompt, subject.attempt, seeds[0])
        others = (replace(first, seed=seed) for seed in dict.fromkeys(seeds[1:]))
        return {reader.sha_of(request): request for request in (first, *others)}

    async def _send(self, request: Request, sha: str, subject: Subject) -> Call:
        """Called while a slot is held, so that waiting for one does not count."""
        started_at, reply = await self._reader.generate(request)
        call = call_row(
            reply,
            request,
            subject,
            request_sha=sha,
            document_id=self._document_id,
            stage=self._stage,
            engine=self.engine_name,
            started_at=started_at,
            worker=self._reader.worker,
        )
        self._reader.usage.called(call)
        self.sent_calls.append(call)
        return call

    def _with_sent(self, call: Call, request: Request) -> Call:
        return with_sent(call, request if self._reader.keeps_prompts else None)

    def _read(self, prompt: Prompt[T], call: Call) -> T | None:
        """The parsed reply; None if there is none, or it cannot be read."""
        if call.problem not in _WITH_A_REPLY:
            return None
        return self._reader.family.read(prompt, call.reply, call.problem == "truncated")

    def _is_readable(self, prompt: Prompt[Any], call: Call) -> bool:
        return self._read(prompt, call) is not None

    def _with_reading(self, prompt: Prompt[T], call: Call, value: T | None) -> Call:
        """The call with what was read in its reply, which the watch counts."""
        if call.problem not in _WITH_A_REPLY:
            return call
        is_legal = value is not None and prompt.is_legal(value)
        read_as = "unread" if value is None else "legal" if is_legal else "illegal"
        is_example = self._reader.family.is_example(type(prompt), call.reply)
        call = replace(call, read_as=read_as, is_example=is_example)
        if not call.is_shared:
            self._reader.watch.replied(call)
        return call

    def _asked(self, prompt: Prompt[T], call: Call, value: T | None) -> Asked[T]:
        """The parsed reply, and its problem."""
        if value is None:
            return Asked(None, call.problem or "unparseable", call.reply)
        return Asked(value, call.problem if prompt.is_whole else None, call.reply)

    def calls(self) -> tuple[Call, ...]:
        """The unit's calls, in order."""
        return numbered(self._calls)
