"""The interface of engines and of their settings, requests and replies."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, get_args

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from pipeline.core.errors import Problem
from pipeline.core.prompts import Constraint, Message, Prompt
from pipeline.core.registry import Registry
from pipeline.core.reply_forms import split_reply
from pipeline.core.settings import Settings

Seconds = Annotated[float, Field(gt=0, le=100_000_000)]  # at most three years
NumWorkers = Annotated[int, Field(gt=0, le=100_000)]
Money = Annotated[float, Field(ge=0, le=1e12)]
Temperature = Annotated[NonNegativeFloat, Field(le=10)]
FinishReason = Literal["stop", "length", "abort"]
ENGINES: "Registry[type[EngineSettings]]" = Registry("is the engine {!r}", "engines")
_HALF = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    prompt: str  # its name
    fields: Prompt[Any] | None  # what `messages` show, for engines without a model; None: no prompt
    messages: tuple[Message, ...]
    max_reply_tokens: int  # in the engine's tokens, not counting thinking
    constraint: Constraint | None = None
    temperature: float | None = 0.0  # None: the server's own
    seed: int = 0
    attempt: int = 1  # more than 1: asked again


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str  # what follows any thinking
    thinking: str | None = None
    finish_reason: FinishReason
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt tokens, those found in the prefix cache
    reply_tokens: int = 0  # of thinking and text
    seconds: float = 0.0
    answered_by: str | None = None  # the model that the engine's server says it is
    # Engines set context_overflow, and timeout if they keep the deadline.
    problem: Problem | None = None


class Engine(Protocol):
    """The interface of an engine. Only a dead engine raises `EngineError`, and only a server that
    stays unreachable `OutageError`; every other failure is a Reply with a problem. One that holds
    connections, processes or GPU memory has `async def close(self) -> None`, too."""

    name: str
    context_tokens: int  # of prompt and answer together, tokens for thinking already subtracted

    async def generate(self, request: Request) -> Reply: ...

    async def count_tokens(self, messages: Sequence[Message]) -> int: ...  # as `generate` renders


class Price(Settings):
    """Money per million tokens, in any currency; None: not known. `cached_input`, of prompt tokens
    found in the cache, is by default the same as `input`."""

    input: Money | None = None
    output: Money | None = None
    cached_input: Money | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        is_lone = self.input is None and self.cached_input is not None
        if is_lone or (self.input is None) != (self.output is None):
            raise ValueError("set both input and output, money for a million tokens")
        return self

    @property
    def is_known(self) -> bool:
        return self.input is not None

    def of(self, prompt: float, cached: float, reply: float) -> float | None:
        """The price of tokens (`cached` is part of `prompt`); None if not known."""
        if self.input is None or self.output is None:
            return None
        per_cached = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * per_cached + reply * self.output) / 1e6


class EngineSettings(Settings):
    """The keys of an `engine` or `rater` section that every engine has. A subclass is registered by
    the name that it declares (`name: Literal["..."]`) once its module is imported."""

    name: str
    context_tokens: PositiveInt | None  # prompt and reply; null: the model's maximum
    temperature: Temperature | None  # null: the server's own
    seed: NonNegativeInt
    sequences: PositiveInt = Field(le=100_000)  # concurrent sequences of one engine
    deadline_seconds: Seconds  # of a request, from its admission to the engine
    start_timeout: Seconds  # seconds that an engine may take to start
    min_workers: NumWorkers
    max_workers: NumWorkers | None  # null: as many as the cluster fits
    cpus_per_worker: NonNegativeFloat | None = Field(le=10_000)  # null: what the engine needs
    keep_prompts: bool = True  # the messages of every call, in the table calls
    price: Price = Price()  # money a million tokens, where the engine's YAML has this key

    is_model: ClassVar[bool] = True  # false: its verdicts are not called ratings
    is_deterministic: ClassVar[bool] = False
    keeps_deadline: ClassVar[bool] = False  # true: the engine itself ends late requests
    keeps_journal: ClassVar[bool] = True  # false: replies cost no more than to write them down
    about_replies: ClassVar[str | None] = None  # what reports say of the engine's replies

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        for name in get_args(cls.model_fields["name"].annotation):
            ENGINES.add(name, cls)

    @property
    def takes_constraints(self) -> bool:
        return False

    @property
    def samples(self) -> bool:
        """True if replies to a request may differ by its seed."""
        return not self.is_deterministic and self.temperature != 0

    @property
    def gpus(self) -> float:
        return 0.0

    @property
    def gpus_elsewhere(self) -> float:
        """As `gpus`, on machines whose packages may be others than this one's."""
        return self.gpus

    @property
    def cpus(self) -> float | None:
        """The CPUs that a worker with this engine reserves; None: all of a machine."""
        return 1.0 if self.cpus_per_worker is None else self.cpus_per_worker

    @property
    def title(self) -> str:
        """The engine's name in reports."""
        return self.name

    def identity(self) -> dict[str, Any]:
        """The settings that change replies, which are hashed; limits and addresses are not. Raises
        as `own_identity` does."""
        of_all = {"engine": self.name, "context_tokens": self.context_tokens}
        sampling: dict[str, Any] = {"temperature": self.temperature}
        if self.temperature != 0:
            sampling["seed"] = self.seed
        return {**of_all, **self.own_identity(), **sampling}

    def token_rates(self) -> tuple[float, float] | None:
        """The uncached prompt tokens and the reply tokens that one engine processes in a second, if
        its settings say so."""
        return None

    def of_run(self, launched_at: datetime) -> Self:
        """The settings for the workers of a run that was first launched then, as chat templates
        may print the date. Changes no identity."""
        return self

    @abstractmethod
    def own_identity(self) -> Mapping[str, Any]:
        """The engine's own part of `identity`. Raises UsageError where a named file is missing."""

    @abstractmethod
    async def start(self) -> Engine:
        """Start the engine; return it once it is ready. Raises StartError where it cannot start."""


def without_thinking(reply: Reply) -> Reply:
    """Move what the reply's text thought to `thinking`, and take the markup of a chat off the rest.
    Half surrogate pairs, which no file can hold, become U+FFFD."""
    thought, text = split_reply(reply.text)
    thinking = _HALF.sub("\ufffd", "\n".join(filter(None, [reply.thinking, thought])))
    return replace(reply, text=_HALF.sub("\ufffd", text), thinking=thinking or reply.thinking)
