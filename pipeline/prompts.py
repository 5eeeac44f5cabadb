"""What a prompt is: its fields, and all that is known of the replies to it, in one module each.

`await ask(prompt)` renders it by the family's template of the same name and gives back an `Asked`.
A prompt class is found by its name in `PROMPTS` once its module is imported.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar

from pipeline.errors import Problem, UsageError
from pipeline.names import register

T = TypeVar("T")
_NEEDED = ("max_reply_tokens", "read", "extractive", "expected", "samples")  # of each class
PROMPTS: "dict[str, type[Prompt[Any]]]" = {}


class Message(TypedDict):
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """All that a reply may be: one of `choices`, or where there are none a match of `regex`.

    `regex` keeps to what vLLM's structured output reads: groups, classes, `|`, `?`, `{m,n}`.
    """

    choices: tuple[str, ...] = ()
    regex: str = ""


@dataclass(frozen=True)
class Prompt(Generic[T]):
    """The values one prompt is filled with; templates loop over its fields. Each prompt is a
    subclass in a module of its own, with everything that is known of its replies.

    References, evidence and the right option are never fields of a reader's prompt.
    """

    name: ClassVar[str]  # of its template, and in the calls table
    max_reply_tokens: ClassVar[int]  # default budget, in the engine's tokens; families override it
    # What a constrained reply looks like, with {} for the value; null: there is nothing to
    # enumerate, replies stay free. Families override it.
    form: ClassVar[str | None] = None
    others: ClassVar[tuple[str, ...]] = ()  # what else a constrained reply may be, in no form
    assumed: ClassVar[str] = ""  # what `expected` takes for granted, for the foot of a plan
    # Whether a reply that its budget cut off is a problem even where it can be read.
    is_whole: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = cls.__dict__.get("name")
        if not isinstance(name, str):
            return
        for member in _NEEDED:
            found = getattr(cls, member, None)
            if found is None or getattr(found, "__isabstractmethod__", False):
                raise UsageError(
                    f"{cls.__module__}: the prompt {cls.__name__} has no {member}; write one"
                )
        register(PROMPTS, name, cls, f"is the prompt {name!r}")

    @abstractmethod
    def read(self, reply: str, is_cut: bool) -> T | None:
        """The value that a reply names, null where it cannot be read: never a guess, never an
        error. `is_cut`: the reply budget ended it."""

    def legal(self, form: str) -> Constraint | None:
        """All replies that are legal in this form; null where there is nothing to enumerate."""
        return None

    @abstractmethod
    def extractive(self) -> str:
        """The extractive engine's reply: from the fields, by lexical rules, without a model."""

    @abstractmethod
    def expected(self) -> str:
        """A reply as a model would usually give it; `plan` counts it."""

    def at_most(self) -> str:
        """The readable reply after which most is still to be asked; `plan` counts its tokens as
        the whole reply budget."""
        return self.expected()

    def fewest(self) -> str:
        """The legal reply after which fewest prompts follow, where each of them is longer for it;
        `plan` counts it too, and takes what is more."""
        return self.at_most()

    @classmethod
    @abstractmethod
    def samples(cls) -> tuple[Self, ...]:
        """Fills that a family's template is tried with, all fields of them set somewhere; a
        family's example replies are read by the first."""

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        """What forms are tried with: texts to put in, and the value each must be read as."""
        return {}

    def shown(self) -> Sequence[Any]:
        """The values that the rendered prompt must hold; by default those of every field."""
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What came of asking. `value` is null where there is a problem other than truncated.

    `raw` is the reply without thinking, kept whatever came of it. Problems: context_overflow (not
    asked), timeout, engine_failed, unparseable; truncated (of a prompt that `is_whole`, or where
    nothing could be read in what there is).
    """

    value: T | None
    problem: Problem | None
    raw: str

    @property
    def has_reply(self) -> bool:
        """Whether the engine replied at all, be it cut off or unreadable."""
        return self.problem in (None, "truncated", "unparseable")
