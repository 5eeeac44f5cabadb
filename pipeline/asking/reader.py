"""`Reader`: an engine with all settings that shape its replies, and the requests it is sent."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.asking.reply_health import ReplyWatch
from pipeline.asking.slots import Slots
from pipeline.core.calls import UsageCounters
from pipeline.core.engine import Engine, Request
from pipeline.core.prompts import Prompt
from pipeline.core.settings import sha
from pipeline.families.family import Family


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
    keeps_prompts: bool = True  # what was sent, in the rows of calls
    waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
    usage: UsageCounters = field(default_factory=UsageCounters)  # of the worker
    watch: ReplyWatch = field(default_factory=ReplyWatch)  # of the worker's first replies
    worker: str | None = None

    def request(self, prompt: Prompt[Any], attempt: int, seed: int) -> Request:
        """The rendered prompt."""
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

    def seed_of(self, repeat: int, attempt: int, of_unit: int) -> int:
        """The engine's seed. With sampling, repeats, further attempts and attempts at the unit get
        seeds of their own, or they would draw the same reply again."""
        if self.temperature == 0 or (repeat, attempt, of_unit) == (0, 1, 1):
            return self.seed
        retry = [of_unit] if of_unit > 1 else []
        return int(sha([self.seed, repeat, attempt, *retry], 7), 16)

    def sha_of(self, request: Request) -> str:
        """The hash that identifies a request in the calls table."""
        what = [request.messages, request.max_reply_tokens, request.seed, request.attempt]
        legal = [asdict(request.constraint)] if request.constraint else []
        return sha([self.identity, request.prompt, *what, *legal], 16)
