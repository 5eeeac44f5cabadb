"""The simulated engine: a GPU engine's sequences, token rates and KV cache, on the real clock.

For measuring scheduling without a GPU; its replies are meaningless.

- Tokens are words. Requests are admitted in the order of their arrival, each once a sequence is
  free and the KV cache has space for its prompt and reply beside those of the running requests.
- Prompts are prefilled one after the other, at `prefill_tokens_per_second`. Leading whole blocks
  of an earlier prompt that are still cached are skipped; the last token is always prefilled.
- All running sequences decode at the same time, each at `decode_tokens_per_second`.
- Blocks that no running request uses stay cached until their space is needed; the least recently
  used are evicted first. Requests with a common prefix share its blocks.
- An unconstrained reply begins with the text in `openings` for its prompt and is filled up to
  `reply_tokens`. A reply constrained to choices is the first of them; one constrained to a pattern
  is the opening alone.
- Without an opening, page ends and look-ups are drawn (`drawn`), on which later costs depend.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from random import Random
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, ValidationInfo, field_validator

from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.prompts import Constraint, Message, Prompt
from pipeline.core.settings import sha

# Pages that models look up at once when n are allowed: about n ** 0.65, in runs of seven books.
_POWER = 0.65
_TURNS = 3  # of a sequential look-up before it stops


class SimulatedSettings(EngineSettings):
    """The `engine` section of engine=simulated; conf/engine/simulated.yaml beside this file
    explains the keys. It is not a model, so its verdicts do not count as ratings."""

    name: Literal["simulated"]
    context_tokens: PositiveInt
    prefill_tokens_per_second: PositiveFloat
    decode_tokens_per_second: PositiveFloat  # of each sequence
    kv_tokens: PositiveInt
    block_tokens: PositiveInt
    reply_tokens: PositiveInt  # of every unconstrained reply, unless the request allows fewer
    openings: dict[str, str]  # prompt -> the beginning of its replies
    gpus_per_worker: NonNegativeFloat  # reserved but not used, to test placement on a cluster

    is_model: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = True
    about_replies: ClassVar[str | None] = (
        "The simulated engine answered: it takes a model's time and says nothing worth reading. "
        "Calls, tokens and times are what the table shows; scores mean nothing."
    )

    @field_validator("kv_tokens")
    @classmethod
    def _holds_a_request(cls, kv_tokens: int, info: ValidationInfo) -> int:
        context_tokens = info.data.get("context_tokens") or 0
        if kv_tokens < context_tokens:
            raise ValueError(f"smaller than context_tokens={context_tokens}; raise it")
        return kv_tokens

    @property
    def gpus(self) -> float:
        return self.gpus_per_worker

    def own_identity(self) -> Mapping[str, Any]:
        own = {"reply_tokens": self.reply_tokens, "openings": self.openings}
        return {"version": SimulatedEngine.version, **own}

    def token_rates(self) -> tuple[float, float]:
        return self.prefill_tokens_per_second, self.decode_tokens_per_second * self.sequences

    async def start(self) -> "SimulatedEngine":
        return SimulatedEngine(self)


class SimulatedEngine:
    """A cancelled request releases its sequence and its KV blocks."""

    name = "simulated"
    version = 2  # raise when its replies change

    def __init__(self, settings: SimulatedSettings) -> None:
        self.context_tokens = settings.context_tokens
        self.block_tokens = settings.block_tokens
        self._settings = settings
        self._kv_cache = KVCache(settings.kv_tokens // settings.block_tokens)
        self._num_running = 0
        self._prefill_ends = 0.0  # on time.perf_counter's clock
        self._admission_lock = asyncio.Lock()  # first come, first served
        self._request_finished = asyncio.Event()

    async def generate(self, request: Request) -> Reply:
        """A reply, returned after the time that a GPU engine would take.

        Problem: context_overflow if prompt and reply exceed the whole KV cache.
        """
        start = time.perf_counter()
        prompt, text = await self.tokens(request.messages), self._text(request)
        num_reply = len(text.split())
        prefix = block_hashes(prompt, self.block_tokens)
        num_private = -(-(len(prompt) + num_reply) // self.block_tokens) - len(prefix)
        if len(prefix) + num_private > self._kv_cache.num_blocks:
            return Reply(text="", finish_reason="abort", problem="context_overflow")
        async with self._admitted(prefix, num_private) as num_hits:
            cached = min(num_hits, (len(prompt) - 1) // self.block_tokens) * self.block_tokens
            await self._sleep_until_done(len(prompt) - cached, num_reply)
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
    async def _admitted(self, prefix: Sequence[int], num_private: int) -> AsyncIterator[int]:
        """Hold a sequence and KV blocks inside the context; yields the cache hits in `prefix`."""
        async with self._admission_lock:
            while True:
                is_free = self._num_running < self._settings.sequences
                num_hits = self._kv_cache.allocate(prefix, num_private) if is_free else None
                if num_hits is not None:
                    break
                self._request_finished.clear()
                await self._request_finished.wait()
            self._num_running += 1
        try:
            yield num_hits
        finally:
            self._num_running -= 1
            self._kv_cache.release(prefix, num_private)
            self._request_finished.set()

    async def _sleep_until_done(self, num_prefill: int, num_decode: int) -> None:
        """Sleep for as long as the tokens take. Prefill times are summed, not measured, so that
        late wake-ups of the event loop do not accumulate."""
        now = time.perf_counter()
        begin = max(now, self._prefill_ends)
        self._prefill_ends = begin + num_prefill / self._settings.prefill_tokens_per_second
        done = self._prefill_ends + num_decode / self._settings.decode_tokens_per_second
        await asyncio.sleep(done - now)

    def _text(self, request: Request) -> str:
        opening = self._settings.openings.get(request.prompt)
        if opening is None and request.fields:
            opening = drawn(request.fields, request.seed)
        opening = opening or ""
        if request.constraint:
            return _legal(request, request.constraint, opening)
        unique_word = sha([request.messages, request.seed], 8)  # no two replies are equal
        num_tokens = min(self._settings.reply_tokens, request.max_reply_tokens)
        words = [*opening.split(), unique_word, *("word" for _ in range(num_tokens))]
        return " ".join(words[:num_tokens])


def drawn(prompt: Prompt[Any], seed: int) -> str | None:
    """A reply in the form of a prompt that shows labeled paragraphs or pages to look up; None for
    other prompts. It depends only on the fields and the seed.

    A paragraph is drawn by a hash of its text, so each is equally likely. Pages are drawn by a hash
    of the question, so all methods draw the same: about `max_pages` ** 0.65 at once, or three one
    after the other, then the prompt's word for no more.
    """
    fields, form = vars(prompt), prompt.form or ""
    if "paragraphs" in fields:
        pauses = {
            paragraph.label: Random(f"{seed} {paragraph.text}").random()
            for paragraph in fields["paragraphs"]
            if paragraph.label is not None
        }
        label = max(pauses, key=lambda label: pauses[label], default=None)
        return None if label is None else form.format(label)
    if not {"max_pages", "pages_read"} & fields.keys():
        return None
    draw = Random(f"{seed} {fields['question']}")
    most = fields.get("max_pages", 0)
    number = min(int(most**_POWER + draw.random()), most) if most else 0
    shown = sorted({p.page_number for p in fields["passages"] if p.page_number is not None})
    draw.shuffle(shown)
    if most:
        return form.format(", ".join(map(str, shown[:number])))
    num_read = len(fields["pages_read"])
    is_over = num_read >= min(_TURNS, len(shown))
    return prompt.others[0] if is_over else form.format(shown[num_read])


def _legal(request: Request, constraint: Constraint, opening: str) -> str:
    """The choice that means the same as the opening, else the first one; for a pattern the
    opening."""
    if not constraint.choices or not request.fields:
        return constraint.choices[0] if constraint.choices else opening
    read = request.fields.read
    value = read(opening, False)
    return next(
        (c for c in constraint.choices if value and read(c, False) == value), constraint.choices[0]
    )


class KVCache:
    """A prefix cache of `num_blocks` KV blocks.

    Prefix blocks are identified by a hash of all tokens up to their end and shared by requests.
    Private blocks, which hold the rest of the prompt and the reply, are never shared.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._num_users: Counter[int] = Counter()  # running requests, by prefix block
        self._unused: dict[int, None] = {}  # cached prefix blocks, least recently used first
        self._num_private = 0

    def allocate(self, prefix: Sequence[int], num_private: int) -> int | None:
        """The number of leading blocks of `prefix` that were cached; None if nothing was
        allocated because running requests use too many blocks."""
        num_new = sum(block not in self._num_users for block in prefix)
        if len(self._num_users) + self._num_private + num_new + num_private > self.num_blocks:
            return None
        is_cached = (block in self._num_users or block in self._unused for block in prefix)
        num_hits = len(list(takewhile(bool, is_cached)))
        for block in prefix:
            self._unused.pop(block, None)
            self._num_users[block] += 1
        self._num_private += num_private
        while len(self._num_users) + self._num_private + len(self._unused) > self.num_blocks:
            del self._unused[next(iter(self._unused))]
        return num_hits

    def release(self, prefix: Sequence[int], num_private: int) -> None:
        """Undo `allocate`. The blocks at a prompt's end are evicted before those at its beginning,
        which more prompts share."""
        for block in reversed(prefix):
            self._num_users[block] -= 1
            if not self._num_users[block]:
                del self._num_users[block]
                self._unused[block] = None
        self._num_private -= num_private


def block_hashes(tokens: Sequence[Any], block_tokens: int) -> list[int]:
    """A hash for each whole block of a prompt, of all tokens up to the block's end.

    Hashes differ from process to process.
    """
    hashes: list[int] = []
    for end in range(block_tokens, len(tokens) + 1, block_tokens):
        before = hashes[-1] if hashes else 0
        hashes.append(hash((before, tuple(tokens[end - block_tokens : end]))))
    return hashes
