"""Dated events of a user's life in a chat, keys to find it by (LongMemEval section 5.4, figure
12)."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar

from stages.prompts.longmemeval.chat_fields import (
    TYPICAL_ITEMS,
    OfChatByExample,
    as_json,
    shortened,
    stored,
    typical_items,
    user_sentences,
)
from stages.prompts.parsing.json_replies import list_items
from stages.text.chat_text import MONTH, day_of, days_in

Event = tuple[str, str]
"""The day as YYYY/MM/DD, "" where it is not known; what happened."""
_DATED = re.compile(
    rf"\b(?:{MONTH}\.?\s\d|\d(?:st|nd|rd|th)?\s(?:of\s)?{MONTH}\b"
    rf"|(?:in|on|since|until|last|this|next|early|late|mid)[\s-]{MONTH}\b)",
    re.IGNORECASE,
)
_FROM_TODAY = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
_RELATIVE = re.compile(rf"\b(?:{'|'.join(_FROM_TODAY)})\b", re.IGNORECASE)
_SOME_DAY = "2023/05/30"
_MOST_EXTRACTED = 30  # so many sentences of thirty words fit the budget with their dates


@dataclass(frozen=True)
class ExtractEvents(OfChatByExample[tuple[Event, ...]]):
    """Ask for what happened to the user, or will, on days that chat and date tell. The value:
    (day as YYYY/MM/DD or "", event) each; () for none, which is legal."""

    name: ClassVar[str] = "extract_events"
    max_reply_tokens: ClassVar[int] = 2000
    assumed: ClassVar[str] = TYPICAL_ITEMS

    def read(self, reply: str, is_cut: bool) -> tuple[Event, ...] | None:
        """The objects of the JSON list with an `event`, those before the cut in a cut one. A `date`
        that is no single day is "". None where a list has no such object, or cannot be read."""
        items = list_items(reply, is_cut)
        if items is None:
            return None
        events = (_event(item) for item in items)
        return tuple(event for event in events if event) or (None if items else ())

    def extractive(self) -> str:
        """The user's sentences with a date, the name of a month in one, or a word like "today"."""
        events = [(self._day(text), text) for text in user_sentences(self.chat)]
        known = [(day, text) for day, text in events if day or _DATED.search(text)]
        return _listed((day, shortened(text)) for day, text in known[:_MOST_EXTRACTED])

    def _day(self, text: str) -> str:
        """The first day that a sentence states, or counts from the session's."""
        stated, relative = days_in(text), _RELATIVE.search(text)
        today = day_of(self.said_at)
        if stated or not relative or not today:
            return stated[0] if stated else ""
        year, month, day = map(int, today.split("/"))
        try:
            then = date(year, month, day) + timedelta(_FROM_TODAY[relative[0].lower()])
        except OverflowError:
            return ""
        return then.isoformat().replace("-", "/")

    def expected(self) -> str:
        return _listed((_SOME_DAY, text) for text in typical_items(self.chat) if text)


def _event(item: Any) -> Event | None:
    """None where an item of the list is no event."""
    text = item.get("event") if isinstance(item, dict) else None
    if not isinstance(text, str) or not (event := stored(text)):
        return None
    said = item.get("date")
    return (day_of(said) if isinstance(said, str) else "", event)


def _listed(events: Any) -> str:
    return as_json({"date": day, "event": text} for day, text in events)
