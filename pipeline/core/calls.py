"""Model calls of one unit, the progress of a unit, and the counters of a worker."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar

from pipeline.core.engine import Request
from pipeline.core.prompts import Constraint, Message
from pipeline.core.rows import Record

UNANSWERED = ("timeout", "refused", "engine_failed")  # problems of calls without a reply to keep
OF_SUBJECT = ("page_index", "question_id", "turn", "reference_index")
_SUBJECT: Any = attrgetter(*OF_SUBJECT)
SENT = ("messages", "temperature", "seed", "max_reply_tokens", "constraint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Record):
    """One model call. `request_sha` hashes rendered messages, model, sampling, seed and attempt."""

    table: ClassVar[str] = "calls"
    key: ClassVar[tuple[str, ...]] = ("unit", "call_index")
    stamps: ClassVar[tuple[str, ...]] = ("method", "repeat", "memory", "input_sha")
    call_index: int  # position within the unit, sorted by the columns below
    stage: str  # the stage that asked
    question_id: str | None  # the question that it was for; null: for the document
    page_index: int | None  # the page that it was for; null: for no single page
    turn: int | None  # of a question's turns, from 0
    reference_index: int | None  # the reference that an answer was compared with
    prompt: str  # the name of its template
    request_sha: str  # hash of rendered messages, model, sampling, seed and attempt
    engine: str  # the engine and model
    attempt: int  # from 1: of several tries after illegal replies, or of several replies drawn
    prompt_tokens: int  # counted by the engine
    cached_tokens: int  # of the prompt's tokens, those that the engine had in its cache
    reply_tokens: int  # counted by the engine, thinking included
    finish_reason: str  # stop; length: the reply budget ended it; abort: no usable reply
    seconds: float  # from when it was sent to its reply
    reply: str  # without thinking, a chat's markup, and a fence or tags around the whole of it
    thinking: str | None = None  # what the model wrote before its reply
    # What was handed to the engine, before its chat template; null: it was not kept.
    messages: tuple[Message, ...] | None = None
    # Of the request; null with `messages`, and where it is left to the server.
    temperature: float | None = None
    seed: int | None = None  # of the request; null with `messages`
    max_reply_tokens: int | None = None  # of the request; null with `messages`
    constraint: Constraint | None = None  # the legal replies, if the engine was given them
    is_shared: bool = False  # copied from another page's identical request, at no cost
    started_at: datetime | None = None  # UTC; when it was sent to the engine
    worker: str | None = None  # host and process
    answered_by: str | None = None  # the model, as the server named it; null: it did not
    read_as: str | None = None  # legal, illegal (a value not on offer) or unread; null: no reply
    is_example: bool = False  # the reply is equal to an example that its prompt shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The page, question, turn and reference that a call is about: columns of the calls table."""

    page_index: int | None = None
    question_id: str | None = None
    turn: int | None = None
    reference_index: int | None = None
    attempt: int = 1


# Identifies a call within its unit: two pages of the same text send the same request.
CallKey = tuple[str, int | None, str | None, int | None, int | None]


def call_key(request_sha: str, subject: Subject | Call) -> CallKey:
    return (request_sha, *_SUBJECT(subject))


def with_sent(call: Call, request: Request | None) -> Call:
    """The call with the columns of `SENT` taken from `request`, or None in all of them."""
    sent: dict[str, Any] = {name: getattr(request, name, None) for name in SENT}
    return replace(call, **sent)


def numbered(calls: Iterable[Call]) -> tuple[Call, ...]:
    """The calls with their `call_index`, sorted by what they are about: the order in which they
    finished does not count."""

    def order(call: Call) -> tuple[object, ...]:
        numbers = (call.page_index, call.turn, call.reference_index)
        of_call = (call.prompt, call.attempt, call.request_sha)
        return (call.question_id or "", *(-1 if n is None else n for n in numbers), *of_call)

    return tuple(replace(call, call_index=i) for i, call in enumerate(sorted(calls, key=order)))


@dataclass
class UnitProgress:
    """A stage's progress within one unit: it has done `done` of `about` pages or questions. `about`
    is None if the number is not known."""

    done: int = 0
    about: int | None = None
    is_committed: bool = False
    _subjects: set[tuple[object, ...]] = field(default_factory=set)
    _is_done_set: bool = False  # by `tell`

    def replied(self, subject: Subject) -> None:
        """Count a reply, whether new, shared or replayed."""
        self._subjects.add((subject.question_id, subject.page_index))
        if not self._is_done_set:
            self.done = len(self._subjects)

    def tell(self, about: int | None, done: int | None = None) -> None:
        """Set the total, and the number done if replies do not show it."""
        self.about = about
        if done is not None:
            self.done, self._is_done_set = done, True

    @property
    def share(self) -> float:
        if self.is_committed:
            return 1.0
        return min(self.done / self.about, 1.0) if self.about else 0.0


@dataclass(kw_only=True)
class UsageCounters:
    """Counters of a worker's process, or of one document. Tokens are counted by the engine."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt tokens
    reply_tokens: int = 0
    units: int = 0
    rows: int = 0
    problems: int = 0

    def called(self, call: Call) -> None:
        self.calls += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.reply_tokens += call.reply_tokens

    def committed(self, num_rows: int, num_problems: int) -> None:
        self.units += 1
        self.rows += num_rows
        self.problems += num_problems
