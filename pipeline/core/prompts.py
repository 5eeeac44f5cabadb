"""The base class of prompts. `await ask(prompt)` renders one by the family's template of the same
name and returns an `Asked`. Importing a prompt's module registers its class in `PROMPTS`."""

import dataclasses
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from pipeline.core.errors import Problem, UsageError
from pipeline.core.registry import Registry

T = TypeVar("T")
_NEAR = 8  # words: the most between a negation and the word it negates, or within a phrase
PROMPTS: "Registry[type[Prompt[Any]]]" = Registry("is the prompt {!r}", "prompts", True)


class Message(TypedDict):
    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The legal replies: `choices`, or if there are none, matches of `regex`, which uses only what
    vLLM's structured output supports: groups, classes, `|`, `?`, `{m,n}`."""

    choices: tuple[str, ...] = ()
    regex: str = ""

    def structured_outputs(self) -> dict[str, Any]:
        """The constraint as vLLM's parameters and its server take it."""
        return {"choice": list(self.choices)} if self.choices else {"regex": self.regex}


class Refusals(BaseModel):
    """Words of refusals, in small letters and without apostrophes; `*` in a phrase of `enough`
    stands for a few words. A reply refuses in three cases:

    A sentence has a word of `negations`, soon after it and before a comma one of `needed`, and
    after the negation none of `unless`. Or a part of a sentence has a phrase of `enough`, and
    beside it no negation and no word of `open`. Or a part is one of `alone`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    negations: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    enough: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def are_in(self, text: str) -> bool:
        """True if a text (of `plain_text`) refuses."""
        for words in map(_words, re.split(r"[.!?;:\n]", text)):
            taken_back = max((n for n, word in enumerate(words) if word in self.unless), default=-1)
            for n, word in enumerate(words):
                near = takewhile(lambda other: other != ",", words[n : n + _NEAR])
                if word in self.negations and n > taken_back and {*near} & {*self.needed}:
                    return True
        for part in (" ".join(_words(part)) for part in re.split(r"[.!?;:,(\n–]|\s-\s", text)):
            matches = filter(None, (_pattern(phrase).search(part) for phrase in self.enough))
            beside = [(part[: m.start()], *m.groups(), part[m.end() :]) for m in matches]
            denied = {*self.negations, *self.open}
            if part in self.alone or any(denied.isdisjoint(_words(" ".join(b))) for b in beside):
                return True
        return False


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|,", text.lower())


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    words = [re.escape(part.strip()) for part in phrase.split("*")]
    return re.compile(r"\b" + rf" ((?:\w+ ){{0,{_NEAR}}}?)".join(words) + r"\b")


@dataclass(frozen=True)
class Prompt(Generic[T]):
    """Base class of prompts, with a field for each value that fills its template. References,
    evidence and the right option are never fields of a reader's prompt."""

    name: ClassVar[str]  # of its template, and in the calls table
    max_reply_tokens: ClassVar[int]  # default budget, in the engine's tokens; families override it
    # The form of a constrained reply, with {} for the value; None: replies are free text, as legal
    # ones cannot be enumerated. Families override it.
    form: ClassVar[str | None] = None
    others: ClassVar[tuple[str, ...]] = ()  # legal constrained replies without the form
    assumed: ClassVar[str] = ""  # the assumptions of `expected`, printed below a plan
    # The prompts that it may follow in a conversation.
    follows: "ClassVar[tuple[type[Prompt[Any]], ...]]" = ()
    # Values to test forms with: text to fill in -> the value that the parser must read.
    form_values: ClassVar[Mapping[str, Any]] = {}
    # Raised when the same reply is read as another value; hashed into the steps that ask it.
    version: ClassVar[int | None] = None
    # Whether a truncated reply is a problem even if it can be parsed.
    is_whole: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = cls.__dict__.get("name")
        if not isinstance(name, str):
            return
        for member in ("max_reply_tokens", "extractive", "expected", "samples"):
            value = getattr(cls, member, None)
            if value is None or getattr(value, "__isabstractmethod__", False):
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
        `is_cut`: the reply budget ended the reply. By default the value is any text, stripped."""
        return cast(T, reply.strip()) or None

    def refusal(self, text: str, refusals: Refusals) -> T | None:
        """The value of `text` (of `plain_text`), which `read` could not read, if it refuses."""
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


def rendered_values(part: Any) -> Iterator[str]:
    """The texts that a rendered prompt must show. `part`: the prompt, or a value within it."""
    if isinstance(part, tuple):
        for inner in part:
            yield from rendered_values(inner)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for field in dataclasses.fields(part):
            if field.name != "kind":  # it controls how a passage is shown
                yield from rendered_values(getattr(part, field.name))
    elif part is not None and not isinstance(part, bool):  # a bool chooses among wordings
        yield str(part)


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """A parsed reply, and `raw`, its text without thinking. `value` is None if there is a problem
    other than truncated. Problems: context_overflow (not sent), timeout, refused, engine_failed,
    unparseable; truncated (if the prompt `is_whole`, or if the reply cannot be parsed)."""

    value: T | None
    problem: Problem | None
    raw: str

    @property
    def has_reply(self) -> bool:
        """True if the engine replied, even if the reply is truncated or unparseable."""
        return self.problem in (None, "truncated", "unparseable")
