"""Calls of one unit: their subjects, rows, order, and JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.core.engine import Reply, Request
from pipeline.core.rows import Call

UNANSWERED = ("timeout", "engine_failed")  # problems of calls without a reply to keep
_SENT = ("messages", "temperature", "seed", "max_reply_tokens", "constraint")


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


def call_row(reply: Reply, request: Request, subject: Subject, **others: Any) -> Call:
    """The row of a request and its reply; `others` are the remaining columns. Its `call_index` is
    set when the unit is done, and what was sent by `with_sent`."""
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


def with_sent(call: Call, request: Request | None) -> Call:
    """The call with the columns that say what was sent: those of `request`; None: nulls."""
    sent: dict[str, Any] = {name: getattr(request, name, None) for name in _SENT}
    return replace(call, **sent)


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


def call_to_json(call: Call) -> bytes:
    """The call as JSON in one line, without what was sent: whoever replays it has the request."""
    return _json().dump_json(call, exclude=set(_SENT))


def call_from_json(content: bytes) -> Call | None:
    """The call; None if the content is no call."""
    try:
        call: Call = _json().validate_json(content)
    except ValidationError:
        return None
    return call


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)
