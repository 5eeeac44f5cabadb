"""Execute a committed unit again to recover the requests it sent: its recorded replies are
replayed, and the Request of each is collected. Sends nothing to a model, writes nothing.

A request is recognised by its hash (`request_sha`), which covers the rendered messages, so the
collected request is exactly the one sent. A request that was never sent, because it did not fit the
context, is known by its absence from the records, so no tokens need to be counted for that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.asking.ask import Ask, Reader
from pipeline.asking.slots import Slots
from pipeline.core.calls import CallKey, Replay, Subject, call_key, reply_of
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Message, Prompt
from pipeline.core.rows import Call
from pipeline.core.settings import sha
from pipeline.families.family import Family

Count = Callable[[Sequence[Message]], int]
_NO_LIMIT = 10**9  # tokens, of an engine whose context was the model's maximum
_TOKENS_PER_BYTE = 0.25  # until the unit's own calls give the ratio


@dataclass
class RecordedEngine:
    """Stands in for the engine that executed a unit. `count` counts as that one did; None: tokens
    are estimated from bytes, by the ratio of the calls recognised so far. `has_counted`: anything
    depended on counts."""

    name: str
    context_tokens: int
    count: Count | None
    has_counted: bool = False
    num_tokens: int = 0  # of the prompts recognised so far
    num_bytes: int = 0

    async def generate(self, request: Request) -> Reply:
        raise RuntimeError(f"{self.name}: nothing is sent while a unit is rendered again")

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        self.has_counted = True
        if self.count is not None:
            return self.count(messages)
        share = self.num_tokens / self.num_bytes if self.num_bytes else _TOKENS_PER_BYTE
        return round(share * _bytes(messages))

    def recognised(self, messages: Sequence[Message], num_tokens: int) -> None:
        """Update the ratio of tokens to bytes by a recognised call."""
        self.num_tokens += num_tokens
        self.num_bytes += _bytes(messages)


def recorded_reader(
    engine: RecordedEngine, identity: Mapping[str, Any], family: Family, is_constrained: bool
) -> Reader:
    """The Reader that a step of this engine `identity` (see Step.engine) had."""
    return Reader(
        engine=engine,
        identity=sha(identity, 16),
        is_model=True,
        family=family,
        temperature=identity["temperature"],
        seed=identity.get("seed", 0),
        deadline_seconds=None,
        slots=Slots(1),
        is_constrained=is_constrained,
    )


def context_tokens_of(identity: Mapping[str, Any]) -> int:
    """The tokens of prompt and reply together, without those of thinking."""
    total = identity.get("context_tokens")
    return _NO_LIMIT if total is None else int(total) - int(identity.get("thinking_tokens") or 0)


class Rerender(Ask):
    """Replays the calls in `replay`. `sent`: the Request of each call that was rendered again."""

    def __init__(
        self,
        reader: Reader,
        engine: RecordedEngine,
        stage: str,
        document_id: str,
        replay: Replay,
        repeat: int,
    ) -> None:
        super().__init__(reader, stage, document_id, replay, repeat)
        self._engine = engine
        self._tokens = {call.request_sha: call.prompt_tokens for call in replay.calls}
        self._attempts = {call.attempt for call in replay.calls}
        self.sent: dict[CallKey, Request] = {}

    async def num_tokens(self, prompt: Prompt[Any]) -> int:
        recorded = self._recorded(prompt)
        return await super().num_tokens(prompt) if recorded is None else recorded

    async def fits(self, prompt: Prompt[Any], max_reply_tokens: int) -> bool:
        recorded = self._recorded(prompt)
        if recorded is None:
            return await super().fits(prompt, max_reply_tokens)
        return recorded + max_reply_tokens <= self.context_tokens

    def _recorded(self, prompt: Prompt[Any]) -> int | None:
        """The recorded tokens of a prompt that was sent; None if it was not, or if tokens can be
        counted."""
        if self._engine.count is not None:
            return None
        for attempt in self._attempts:
            subject = Subject(attempt=attempt)
            request = self._request(prompt, subject)
            for one in (request, *self._of_earlier_attempts(request, subject)):
                if tokens := self._tokens.get(self.sha_of(one)):
                    return tokens
        return None

    async def _reply(self, request: Request, subject: Subject, is_shared: bool) -> Reply:
        if repeated := self._repeated(request, subject):
            return reply_of(repeated)
        for one in (request, *self._of_earlier_attempts(request, subject)):
            key = call_key(self.sha_of(one), subject)
            if call := self._by_key.get(key):
                return self._recognised(key, one, call)
        return Reply(text="", finish_reason="abort", problem="context_overflow")

    def _recognised(self, key: CallKey, request: Request, call: Call) -> Reply:
        self.sent[key] = request
        self._calls.append(call)
        self._engine.recognised(request.messages, call.prompt_tokens)
        return reply_of(call)


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(message["content"].encode()) for message in messages)
