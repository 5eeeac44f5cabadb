"""Calls as JSON, as journals and shared replies hold them."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from pipeline.core.calls import SENT, Call


def call_to_json(call: Call) -> bytes:
    """The call as JSON in one line, without what was sent: whoever replays it has the request."""
    return _json().dump_json(call, exclude=set(SENT))


def call_from_json(content: bytes) -> Call | None:
    """The call; None if the content is no call."""
    try:
        call: Call = _json().validate_json(content)
    except ValueError:
        return None
    return call


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)
