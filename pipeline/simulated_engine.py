"""The simulated engine: the sequences, rates and KV space of a GPU engine on the real clock.

It shows how well work is scheduled, without a GPU and without any text worth reading. The model:

- Tokens are words. Requests are admitted in the order they come, each once a sequence is free and
  its prompt and reply fit the KV space with those of the requests that run.
- Prompts are prefilled one after the other, at `prefill_tokens_per_second`, but for the leading
  whole blocks that an earlier prompt left in the KV space; the last token is always prefilled.
- All running sequences decode at once, each at `decode_tokens_per_second`.
- Blocks that no running request holds stay until their space is needed, the least recently used
  go first. Two requests with the same beginning hold its blocks once.
- A free reply begins as `openings` says for its prompt and is filled up to `reply_tokens`; where
  there are legal choices it is the first of them, where there is a pattern the opening alone.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, ValidationInfo, field_validator

from pipeline.engine import EngineSettings, Reply, Request
from pipeline.prompts import Message
from pipeline.settings import sha


class SimulatedSettings(EngineSettings):
    """The engine's rates and room. No model: its verdicts are no ratings."""

    name: Literal["simulated"]
    context_tokens: PositiveInt
    prefill_tokens_per_second: PositiveFloat
    decode_tokens_per_second: PositiveFloat  # of each sequence
    kv_tokens: PositiveInt
    block_tokens: PositiveInt
    reply_tokens: PositiveInt  # of every free reply, the request's own limit permitting
    openings: dict[str, str]  # prompt -> how its free reply begins
    gpus_per_worker: NonNegativeFloat  # claimed only: to see where a cluster places engines

    is_model: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = True

    @field_validator("kv_tokens")
    @classmethod
    def _holds_a_request(cls, kv_tokens: int, info: ValidationInfo) -> int:
        context_tokens = info.data.get("context_tokens") or 0
        if kv_tokens < context_tokens:
            raise ValueError(f"less than context_tokens={context_tokens}; raise it")
        return kv_tokens

    @property
    def gpus(self) -> float:
        return self.gpus_per_worker

    def own_identity(self) -> Mapping[str, Any]:
        return {"reply_tokens": self.reply_tokens, "openings": self.openings}

    async def start(self) -> "SimulatedEngine":
        return SimulatedEngine(self)


class SimulatedEngine:
    """At once ready. A request that is cancelled leaves its sequence and its KV space."""

    name = "simulated"

    def __init__(self, settings: SimulatedSettings) -> None:
        self.context_tokens = settings.context_tokens
        self.block_tokens = settings.block_tokens
        self._settings = settings
        self._blocks = Blocks(settings.kv_tokens // settings.block_tokens)
        self._num_running = 0
        self._prefilled_until = 0.0
        self._door = asyncio.Lock()  # fair: who comes first is admitted first
        self._somebody_left = asyncio.Event()

    async def generate(self, request: Request) -> Reply:
        start = time.perf_counter()
        prompt, text = await self.tokens(request.messages), self._text(request)
        num_reply = len(text.split())
        prefix = chain(prompt, self.block_tokens)
        own = -(-(len(prompt) + num_reply) // self.block_tokens) - len(prefix)
        if len(prefix) + own > self._blocks.size:
            return Reply(text="", finish_reason="abort", problem="context_overflow")
        async with self._admitted(prefix, own) as num_found:
            cached = min(num_found, (len(prompt) - 1) // self.block_tokens) * self.block_tokens
            await self._work(len(prompt) - cached, num_reply)
        return Reply(
            text=text,
            finish_reason="stop",
            prompt_tokens=len(prompt),
            cached_tokens=cached,
            reply_tokens=num_reply,
            seconds=time.perf_counter() - start,
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return len(await self.tokens(messages))

    async def tokens(self, messages: Sequence[Message]) -> list[str]:
        return [word for message in messages for word in message["content"].split()]

    @asynccontextmanager
    async def _admitted(self, prefix: Sequence[int], own: int) -> AsyncIterator[int]:
        """Within it, a sequence and the blocks are taken; how many of `prefix` were there."""
        async with self._door:
            while True:
                has_room = self._num_running < self._settings.sequences
                found = self._blocks.take(prefix, own) if has_room else None
                if found is not None:
                    break
                self._somebody_left.clear()
                await self._somebody_left.wait()
            self._num_running += 1
        try:
            yield found
        finally:
            self._num_running -= 1
            self._blocks.give(prefix, own)
            self._somebody_left.set()

    async def _work(self, num_prefill: int, num_decode: int) -> None:
        """Sleep until the reply is there. By the clock, so that late wake-ups do not add up."""
        now = time.perf_counter()
        begin = max(now, self._prefilled_until)
        self._prefilled_until = begin + num_prefill / self._settings.prefill_tokens_per_second
        done = self._prefilled_until + num_decode / self._settings.decode_tokens_per_second
        await asyncio.sleep(done - now)

    def _text(self, request: Request) -> str:
        constraint = request.constraint
        opening = self._settings.openings.get(request.prompt, "")
        if constraint:
            return constraint.choices[0] if constraint.choices else opening
        own_word = sha([request.messages, request.seed], 8)  # no two replies are the same text
        num_tokens = min(self._settings.reply_tokens, request.max_reply_tokens)
        words = [*opening.split(), own_word, *("word" for _ in range(num_tokens))]
        return " ".join(words[:num_tokens])


class Blocks:
    """`size` blocks of KV space. A block is known by all the tokens up to its end."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._holders: Counter[int] = Counter()  # running requests, by block
        self._left: dict[int, None] = {}  # nobody's any more, least recently used first
        self._own = 0  # blocks that no other request can share

    def take(self, prefix: Sequence[int], own: int) -> int | None:
        """How many leading blocks of `prefix` were there; null where there is no room now."""
        new = sum(block not in self._holders for block in prefix)
        if len(self._holders) + self._own + new + own > self.size:
            return None
        there = takewhile(lambda block: block in self._holders or block in self._left, prefix)
        num_there = len(list(there))
        for block in prefix:
            self._left.pop(block, None)
            self._holders[block] += 1
        self._own += own
        while len(self._holders) + self._own + len(self._left) > self.size:
            del self._left[next(iter(self._left))]
        return num_there

    def give(self, prefix: Sequence[int], own: int) -> None:
        """What `take` took. A prompt's end is forgotten before its beginning."""
        for block in reversed(prefix):
            self._holders[block] -= 1
            if not self._holders[block]:
                del self._holders[block]
                self._left[block] = None
        self._own -= own


def chain(tokens: Sequence[Any], block_tokens: int) -> list[int]:
    """A prompt's whole blocks, each by a hash of all tokens up to its end; of this process only."""
    blocks: list[int] = []
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        before = blocks[-1] if blocks else 0
        blocks.append(hash((before, tuple(tokens[end - block_tokens : end]))))
    return blocks
