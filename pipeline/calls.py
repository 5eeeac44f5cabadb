"""Calls of one unit: what each is about, its row, their order, and which a retry asks again."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.engine import Reply, Request
from pipeline.rows import Call, Record

UNANSWERED = ("timeout", "engine_failed")  # problems of calls without a reply to keep
_MADE_OF_GOOD_REPLIES = ("out_of_range",)  # problems of rows whose calls have none
_ABOUT = ("question_id", "page_index", "turn", "reference_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a call is about; columns of the calls table."""

    page_index: int | None = None
    question_id: str | None = None
    turn: int | None = None
    reference_index: int | None = None
    attempt: int = 1


About = tuple[str, int | None, str | None, int | None, int | None]
"""Identifies a call within its unit: two pages of the same text send the same request."""


def about(request_sha: str, place: Subject | Call) -> About:
    """The key of a call within its unit."""
    return (
        request_sha,
        place.page_index,
        place.question_id,
        place.turn,
        place.reference_index,
    )


class Earlier:
    """The calls of the attempt before this one at a unit. A retry replays the good ones.

    `problems`: the rows with a problem that were made from them.
    """

    def __init__(self, calls: Sequence[Call] = (), problems: Sequence[Record] = ()) -> None:
        self._calls = {about(call.request_sha, call): call for call in calls}
        self._problems = problems

    def __contains__(self, key: About) -> bool:
        return key in self._calls

    def good(self, key: About, is_readable: Callable[[Call], bool]) -> Call | None:
        """The call with this key; null where there is none or it is asked again: it got no reply,
        or a row about the same has a problem, which this call, or what it says, explains."""
        call = self._calls.get(key)
        if call is None or call.problem in UNANSWERED:
            return None
        of_rows = {row.problem for row in self._problems if _are_about_the_same(row, call)}
        if of_rows & set(_MADE_OF_GOOD_REPLIES):
            return None
        is_good = call.problem is None and is_readable(call)
        return call if is_good or not of_rows else None


def _are_about_the_same(row: Record, call: Call) -> bool:
    pairs = [(getattr(row, name, None), getattr(call, name)) for name in _ABOUT]
    return all(own == asked for own, asked in pairs if None not in (own, asked))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What has been asked for a unit before, and is replayed.

    `calls`: of this attempt at it (see `Unit.attempt`), by a process that died or committed first.
    `keep` is given each new call, but those that are shared.
    """

    calls: Sequence[Call] = ()
    attempt: int = 1
    earlier: Earlier = field(default_factory=Earlier)
    keep: Callable[[Call], Awaitable[None]] | None = None


def call_of(reply: Reply, request: Request, subject: Subject, **others: Any) -> Call:
    """The row of a request and its reply; `others` are the columns that none of these has. Its
    `call_index` is given when the unit is done."""
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


def replayed(call: Call) -> Reply:
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


def in_order(calls: Iterable[Call]) -> tuple[Call, ...]:
    """Numbered in the order of what they are about, whatever order they ended in."""
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
