"""Calls of one unit: what each is about, its row, and their order."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.engine import Reply, Request
from pipeline.rows import Call


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
