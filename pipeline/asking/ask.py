"""`Ask`: a stage's only access to a model. Renders a prompt, checks that it fits the context,
reuses a reply that is there or sends the prompt, parses the reply and records a Call."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pipeline.asking.reader import Reader
from pipeline.asking.replies import Replies, Wanted
from pipeline.core.calls import Call, Subject, UnitProgress, call_key, numbered, with_sent
from pipeline.core.prompts import Asked, Message, Prompt

T = TypeVar("T")
_WITH_A_REPLY = (None, "truncated")  # problems of calls whose reply is read
_OF_REPLY = (  # columns of a call that a Reply has as fields
    "prompt_tokens", "cached_tokens", "reply_tokens", "finish_reason", "seconds", "thinking",
    "answered_by", "problem",
)  # fmt: skip


class Ask:
    """Sends the prompts of one stage for one unit, unless `replies` has the reply already, and
    tells what a stage may know of its engine: its name, its context, and its counts of tokens.

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
        self._given, self._stage = reader, stage
        self._document_id, self._replies = document_id, replies
        self._repeat, self._rank = repeat, rank
        self._calls: list[Call] = []
        self.sent_calls: list[Call] = []
        self.progress = UnitProgress()
        self._part_tokens: dict[str, int] = {}
        self._counting = asyncio.Lock()  # or concurrent questions would count a part again

    async def __call__(
        self, prompt: Prompt[T], subject: Subject, is_shared: bool = False
    ) -> Asked[T]:
        """Send `prompt` and parse the reply.

        `is_shared`: other documents may send the same request, and the step sends it only once.
        Problems: see `Asked`. Raises EngineError if the engine is dead.
        """
        call = self._repeated(prompt, subject)
        is_new = call is None
        if call is None:
            call = await self._call(prompt, subject, is_shared)
            self.progress.replied(subject)
        if call is None:
            return Asked(None, "context_overflow", "")
        value = self._read(prompt, call)
        if is_new:
            self._calls.append(self._with_reading(prompt, call, value))
        if value is None:
            return Asked(None, call.problem or "unparseable", call.reply)
        return Asked(value, call.problem if prompt.is_whole else None, call.reply)

    def _repeated(self, prompt: Prompt[Any], subject: Subject) -> Call | None:
        """The first attempt's call, if this attempt would send the same request without sampling
        and so get the same reply. (A family's template may not mention the attempt.)"""
        if subject.attempt == 1 or self._reader.temperature != 0:
            return None
        request = self._reader.request(prompt, 1, self._reader.seed)
        first = call_key(self._reader.sha_of(request), subject)
        return next((c for c in self._calls if call_key(c.request_sha, c) == first), None)

    async def _call(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Call | None:
        """The call that answers the prompt; None if it does not fit the context."""
        if not self._replies.calls and not self._replies.earlier and not is_shared:
            return await self._new_call(prompt, subject, is_shared)
        wanted = self._wanted(prompt, subject, is_shared)
        async with self._replies.only_one(wanted):
            if (call := await self._replies.find(wanted)) is None:
                return await self._new_call(prompt, subject, is_shared)
        sent = wanted.requests[call.request_sha] if self._reader.keeps_prompts else None
        return with_sent(call, sent)

    async def _new_call(
        self, prompt: Prompt[Any], subject: Subject, is_shared: bool
    ) -> Call | None:
        """Render, count and send the prompt in a slot: waiting prompts hold no text, and the wait
        does not count as the call's time. The slot is held until the call is kept, so that a crash
        loses few calls."""
        async with self._reader.slots.one(self._rank):
            wanted = self._wanted(prompt, subject, is_shared)
            request_sha, request = next(iter(wanted.requests.items()))
            if not await self._fits(request.messages, request.max_reply_tokens):
                return None
            started_at, reply = await self._reader.generate(request)
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
                worker=self._reader.worker,
            )
            self._reader.usage.called(call)
            self.sent_calls.append(call)
            call = await self._replies.keep(call, wanted)
            return with_sent(call, request if self._reader.keeps_prompts else None)

    def _wanted(self, prompt: Prompt[Any], subject: Subject, is_shared: bool) -> Wanted:
        attempts = self._repeat, subject.attempt, self._replies.attempt
        return Wanted(
            requests=self._reader.requests(prompt, *attempts),
            subject=subject,
            document_id=self._document_id,
            is_shared=is_shared,
            is_readable=lambda call: self._read(prompt, call) is not None,
        )

    def _read(self, prompt: Prompt[T], call: Call) -> T | None:
        if call.problem not in _WITH_A_REPLY:
            return None
        return self._reader.family.read(prompt, call.reply, call.problem == "truncated")

    def _with_reading(self, prompt: Prompt[T], call: Call, value: T | None) -> Call:
        """Add to a call how its reply was read, and count it in the watch."""
        if call.problem not in _WITH_A_REPLY:
            return call
        is_legal = value is not None and prompt.is_legal(value)
        read_as = "unread" if value is None else "legal" if is_legal else "illegal"
        is_example = self._reader.family.is_example(type(prompt), call.reply)
        call = replace(call, read_as=read_as, is_example=is_example)
        if not call.is_shared:
            self._reader.watch.replied(call)
        return call

    def calls(self) -> tuple[Call, ...]:
        return numbered(self._calls)

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

    async def _fits(self, messages: Sequence[Message], max_reply_tokens: int) -> bool:
        num_tokens = await self._reader.engine.count_tokens(messages)
        return num_tokens + max_reply_tokens <= self.context_tokens

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
