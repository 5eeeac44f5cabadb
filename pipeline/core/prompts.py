"""The base class of prompts: their fields, and how replies are parsed, constrained and estimated.

`await ask(prompt)` renders a prompt by the family's template of the same name and returns an
`Asked`. Importing a prompt's module registers its class in `PROMPTS` by name.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from pipeline.core.errors import Problem, UsageError
from pipeline.core.refusals import Refusals
from pipeline.core.registry import Registry

T = TypeVar("T")
_NEEDED = ("max_reply_tokens", "extractive", "expected", "samples")  # in every subclass
PROMPTS: "Registry[type[Prompt[Any]]]" = Registry("is the prompt {!r}", "prompts", True)


class Message(TypedDict):
    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The legal replies: `choices`, or if there are none, matches of `regex`.

    `regex` uses only what vLLM's structured output supports: groups, classes, `|`, `?`, `{m,n}`.
    """

    choices: tuple[str, ...] = ()
    regex: str = ""

    def structured_outputs(self) -> dict[str, Any]:
        """The constraint under the name that vLLM's parameters and its server use."""
        return {"choice": list(self.choices)} if self.choices else {"regex": self.regex}


@dataclass(frozen=True)
class Prompt(Generic[T]):
    """Base class of prompts: one field for each value that the template is filled with.

    References, evidence and the right option are never fields of a reader's prompt.
    """

    name: ClassVar[str]  # of its template, and in the calls table
    max_reply_tokens: ClassVar[int]  # default budget, in the engine's tokens; families override it
    # The form of a constrained reply, with {} for the value; None: replies are free text, as legal
    # ones cannot be enumerated. Families override it.
    form: ClassVar[str | None] = None
    others: ClassVar[tuple[str, ...]] = ()  # other legal constrained replies, in no form
    assumed: ClassVar[str] = ""  # the assumptions of `expected`, printed below a plan
    # The prompts that it may follow in a conversation.
    follows: "ClassVar[tuple[type[Prompt[Any]], ...]]" = ()
    # Raised when the same reply is read as another value; hashed into the steps that ask it.
    version: ClassVar[int | None] = None
    # Whether a truncated reply is a problem even if it can be parsed.
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
        PROMPTS.add(name, cls)

    def earlier(self) -> "tuple[Prompt[Any], str] | None":
        """The prompt before this one in the conversation and the value of its reply, as written in
        its form; None if this prompt begins a conversation."""
        return None

    def read(self, reply: str, is_cut: bool) -> T | None:
        """Parse a reply to its value, or None if it cannot be read: never guesses, never raises.

        `is_cut`: the reply budget ended the reply. By default the value is any text, stripped.
        """
        return cast(T, reply.strip()) or None

    def refusal(self, text: str, refusals: Refusals) -> T | None:
        """The value of a refusal, if `text` (of `plain_text`) refuses; None otherwise. Used if
        `read` finds no value."""
        return None

    def legal(self, form: str) -> Constraint | None:
        """All replies that are legal in this form; None if they cannot be enumerated."""
        return None

    def is_legal(self, value: T) -> bool:
        """False for a value that was not on offer, such as a label that no paragraph has."""
        return True

    @abstractmethod
    def extractive(self) -> str:
        """Make the extractive engine's reply from the fields by lexical rules."""

    @abstractmethod
    def expected(self) -> str:
        """A typical reply of a model, for the estimates of `plan`."""

    @classmethod
    @abstractmethod
    def samples(cls) -> tuple[Self, ...]:
        """Instances to test templates with; each field is set in at least one. The first one parses
        a family's example replies."""

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        """Values to test forms with: text to fill in -> the value that the parser must read."""
        return {}

    def shown(self) -> Sequence[Any]:
        """The values that the rendered prompt must show; by default every field's."""
        return [getattr(self, field.name) for field in dataclasses.fields(self)]


def rendered_values(prompt: Prompt[Any]) -> Iterator[str]:
    return _texts(tuple(prompt.shown()))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for inner in value:
            yield from _texts(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name != "kind":  # it controls how a passage is shown
                yield from _texts(getattr(value, field.name))
    elif value is not None and not isinstance(value, bool):  # a bool chooses among wordings
        yield str(value)


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """A parsed reply. `value` is None if there is a problem other than truncated.

    `raw` is the reply without thinking, kept in any case. Problems: context_overflow (not sent),
    timeout, refused, engine_failed, unparseable; truncated (if the prompt `is_whole`, or if the
    truncated reply cannot be parsed).
    """

    value: T | None
    problem: Problem | None
    raw: str

    @property
    def has_reply(self) -> bool:
        """True if the engine replied, even if the reply is truncated or unparseable."""
        return self.problem in (None, "truncated", "unparseable")
