"""Calls as JSON with a checksum, as journals and shared replies hold them."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from pipeline.core.calls import SENT, Call
from pipeline.files.checksums import with_checksum, without_checksum


def call_to_json(call: Call) -> bytes:
    """The call as JSON in one line, without what was sent: whoever replays it has the request."""
    return with_checksum(_json().dump_json(call, exclude=set(SENT)))


def call_from_json(content: bytes) -> Call | None:
    """The call; None if the content is no call, or is not as it was written."""
    try:
        call: Call = _json().validate_json(without_checksum(content))
    except ValueError:
        return None
    return call


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)
