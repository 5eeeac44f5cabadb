"""What an engine is: one async `generate`, its token counts, its context and its settings."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from pipeline.errors import Problem
from pipeline.prompts import Constraint, Message, Prompt
from pipeline.settings import Settings

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt to answer.

    `fields` is what the messages were rendered from; engines without a model reply from it.
    `max_reply_tokens` counts the engine's own tokens, thinking apart. `attempt` is 1 unless asked
    again.
    """

    prompt: str  # its name
    fields: Prompt[Any] | None  # null: an engine's own question, of no prompt
    messages: tuple[Message, ...]
    max_reply_tokens: int
    constraint: Constraint | None = None
    temperature: float = 0.0
    seed: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An engine's reply. `text` is what follows any thinking, `reply_tokens` count both.

    `problem` is an engine's only where it is context_overflow; `Ask` fills in the others.
    """

    text: str
    thinking: str | None = None
    finish_reason: FinishReason
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
    seconds: float = 0.0
    problem: Problem | None = None


class Engine(Protocol):
    """Raises `EngineError` only when it is dead; whatever else happens is a Reply.

    `context_tokens` is what prompt and answer share; what thinking takes is left out already.
    """

    name: str
    context_tokens: int

    async def generate(self, request: Request) -> Reply: ...

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of the whole prompt as `generate` would send it."""
        ...


class EngineSettings(Settings):
    """The keys that the `engine` section, and a `rater` section, have for every engine."""

    name: str
    context_tokens: PositiveInt | None  # prompt and reply; null: all the model has
    temperature: NonNegativeFloat
    seed: int
    sequences: PositiveInt  # that one engine works on at once
    deadline_seconds: PositiveFloat  # of a request, from its admission to the engine
    start_timeout: PositiveFloat  # seconds that an engine may take to start
    min_workers: PositiveInt
    max_workers: PositiveInt | None  # null: as many as the cluster has room for
    cpus_per_worker: NonNegativeFloat

    is_model: ClassVar[bool] = True  # may its verdicts be called ratings?
    is_deterministic: ClassVar[bool] = False

    @property
    def takes_constraints(self) -> bool:
        return False

    @property
    def gpus(self) -> float:
        """That a worker with this engine holds."""
        return 0.0

    @property
    def title(self) -> str:
        """What a report calls the engine."""
        return self.name

    def identity(self) -> dict[str, Any]:
        """What changes replies, and so is hashed; limits, places and deadlines are not."""
        sampling: dict[str, Any] = {"temperature": self.temperature}
        if self.temperature > 0:
            sampling["seed"] = self.seed
        own = {"engine": self.name, "context_tokens": self.context_tokens}
        return {**own, **self.own_identity(), **sampling}

    @abstractmethod
    def own_identity(self) -> Mapping[str, Any]:
        """The engine's own part of `identity`. Raises UsageError where a file it names is none."""

    @abstractmethod
    async def start(self) -> Engine:
        """The engine, ready. Raises StartError where it cannot start."""
