"""Replies that follow from the request alone: a row made from another's call would be noticed."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pipeline.core.prompts import Message

_VERDICTS = {
    "YES or NO": ("YES", "NO"),
    "one of three verdicts": ("Yes", "Yes, partially", "No"),
}


def sha(*parts: Any) -> str:
    """16 hex digits of what JSON makes of the parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def reply(messages: Sequence[Message]) -> str:
    """A legal reply to any prompt of the family `generic` that these runs use."""
    text, drawn = messages[-1]["content"], sha(messages)
    for asked, verdicts in _VERDICTS.items():
        if asked in text:
            return verdicts[int(drawn, 16) % len(verdicts)]
    if "I want to look up Page" in text:
        return f"I want to look up Page [{int(drawn, 16) % 3}] to see"
    return f"said in reply {drawn}"
