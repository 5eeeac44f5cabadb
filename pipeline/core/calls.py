"""Calls of one unit: their subjects, rows and order, and which of them a retry sends again."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.core.engine import Reply, Request
from pipeline.core.rows import Call, Record

UNANSWERED = ("timeout", "engine_failed")  # problems of calls without a reply to keep
_MADE_OF_GOOD_REPLIES = ("out_of_range",)  # problems of rows whose calls have none
_OF_SUBJECT = ("question_id", "page_index", "turn", "reference_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The page, question, turn and reference that a call is about: columns of the calls table."""

    page_index: int | None = None
    question_id: str | None = None
    turn: int | None = None
    reference_index: int | None = None
    attempt: int = 1


CallKey = tuple[str, int | None, str | None, int | None, int | None]
"""Identifies a call within its unit: two pages of the same text send the same request."""


def call_key(request_sha: str, subject: Subject | Call) -> CallKey:
    """The key of a call within its unit; a call has the columns of its subject."""
    return (
        request_sha,
        subject.page_index,
        subject.question_id,
        subject.turn,
        subject.reference_index,
    )


class EarlierCalls:
    """The calls of the previous attempt at a unit. A retry replays those with a good reply.

    `problems`: the rows of that attempt that have a problem.
    """

    def __init__(self, calls: Sequence[Call] = (), problems: Sequence[Record] = ()) -> None:
        self._calls = {call_key(call.request_sha, call): call for call in calls}
        self._problems = problems

    def __contains__(self, key: CallKey) -> bool:
        return key in self._calls

    def good(self, key: CallKey, is_readable: Callable[[Call], bool]) -> Call | None:
        """The call with this key, to be replayed; None if there is none, or if it is sent again: it
        got no reply, or a row about the same subject has a problem that this call may have
        caused."""
        call = self._calls.get(key)
        if call is None or call.problem in UNANSWERED:
            return None
        of_rows = {row.problem for row in self._problems if _are_about_the_same(row, call)}
        if of_rows & set(_MADE_OF_GOOD_REPLIES):
            return None
        is_good = call.problem is None and is_readable(call)
        return call if is_good or not of_rows else None


def _are_about_the_same(row: Record, call: Call) -> bool:
    pairs = [(getattr(row, name, None), getattr(call, name)) for name in _OF_SUBJECT]
    return all(own == asked for own, asked in pairs if None not in (own, asked))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The recorded calls of a unit, which are replayed instead of sent.

    `calls`: of this attempt at it (see `Unit.attempt`), from a process that died or that committed
    first. `earlier`: of the previous attempt. `keep` is called with each new call, shared ones
    excepted.
    """

    calls: Sequence[Call] = ()
    attempt: int = 1
    earlier: EarlierCalls = field(default_factory=EarlierCalls)
    keep: Callable[[Call], Awaitable[None]] | None = None


def call_row(reply: Reply, request: Request, subject: Subject, **others: Any) -> Call:
    """The row of a request and its reply; `others` are the remaining columns. Its `call_index` is
    set when the unit is done."""
    return Call(
        call_index=0,
        question_id=subject.question_id,
        page_index=subject.page_index,
        turn=subject.turn,
        reference_index=subject.reference_index,
        prompt=request.prompt,
        attempt=request.attempt,
        prompt_tokens=reply.prompt_tokens,
        cached_tokens=reply.cached_tokens,
        reply_tokens=reply.reply_tokens,
        finish_reason=reply.finish_reason,
        seconds=reply.seconds,
        reply=reply.text,
        thinking=reply.thinking,
        problem=reply.problem,
        **others,
    )


def reply_of(call: Call) -> Reply:
    """The reply of a recorded call."""
    return Reply(
        text=call.reply,
        thinking=call.thinking,
        finish_reason=call.finish_reason,  # type: ignore[arg-type]  # written from a Reply
        prompt_tokens=call.prompt_tokens,
        cached_tokens=call.cached_tokens,
        reply_tokens=call.reply_tokens,
        seconds=call.seconds,
        problem=call.problem,
    )


def numbered(calls: Iterable[Call]) -> tuple[Call, ...]:
    """The calls sorted and numbered by what they are about, in whatever order they finished."""
    return tuple(replace(call, call_index=i) for i, call in enumerate(sorted(calls, key=_key)))


def _key(call: Call) -> tuple[object, ...]:
    numbers = (call.page_index, call.turn, call.reference_index)
    return (
        call.question_id or "",
        *(-1 if n is None else n for n in numbers),
        call.prompt,
        call.attempt,
        call.request_sha,
    )
