"""Prompts for keys that find a chat between user and assistant: summary, keyphrases, facts and
dated events (LongMemEval sections 5.3 and 5.4, appendix D, figures 11 and 12)."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar, Generic, Self, TypeVar

from pipeline.core.prompts import Prompt
from stages.prompts.passages import DATE
from stages.prompts.replies import list_items, parse_lines
from stages.text.chat_text import MONTH, day_of, days_in
from stages.text.excerpts import best_clauses, gist, sentences, spread_pieces
from stages.text.ranking import terms, weights
from stages.text.words import PAGE_BREAK, num_words, without_header

T = TypeVar("T")
_NEXT_TURN = re.compile(r"\n\n(?=(?:user|assistant|system):)")
_ROLE = re.compile(r"(?:user|assistant|system):\s*")
_LEAST_WORDS, _MOST_WORDS = 3, 30  # of a sentence that is taken over; of a longer one its clauses
# Our assumption: a typical reply has an item of twelve words for each hundred words of chat.
_WORDS_AN_ITEM, _ITEM_WORDS = 100, 12
_TYPICAL_ITEMS = f"an item of {_ITEM_WORDS} words per {_WORDS_AN_ITEM} words of chat"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# A sample value.
CHAT = (
    "user: I moved to {{ Bern }} on 2023/05/02. <3> Any tips?\n\n"
    "assistant: {% Welcome %}, try my \\n favourite café.\n\nuser: My cat {# Max #} is 3."
)


@dataclass(frozen=True)
class OfChat(Prompt[T], Generic[T]):
    """Base class of prompts that show a session of a chat, a round of one, or the user's side
    alone.

    `chat` has its turns as paragraphs, `user: ...`. `said_at` is the session's date, "" without
    one.
    """

    is_whole: ClassVar[bool] = False  # a key made of a cut reply still finds its chat
    chat: str
    said_at: str

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return cls(CHAT, DATE), cls(CHAT, ""), cls("I rang the bell today.", "")


@dataclass(frozen=True)
class OfChatByExample(OfChat[T], Generic[T]):
    """Base class of the prompts to which the authors add ten examples of replies (appendix D)."""

    with_examples: bool = False  # whether the prompt has ten, of our own

    @classmethod
    def samples(cls) -> tuple[Self, ...]:
        return cls(CHAT, DATE), cls(CHAT, ""), cls("I rang the bell today.", "", with_examples=True)


def _typical_items(chat: str) -> list[str]:
    """The first twelve of each hundred words of the chat."""
    words = chat.split()
    starts = range(0, max(1, len(words)), _WORDS_AN_ITEM)
    return [" ".join(words[start : start + _ITEM_WORDS]) for start in starts]


def user_sentences(chat: str) -> list[str]:
    """The user's statements, one sentence each, without repeats: three words or more, no questions.
    Where no turn is marked as the user's, all turns count."""
    turns = _NEXT_TURN.split(without_header(PAGE_BREAK + chat.strip()).strip())
    own = [turn for turn in turns if turn.startswith("user:")] or turns
    found = [s.text for turn in own for s in sentences(_ROLE.sub("", turn, count=1))]
    stated = [text for text in found if not text.endswith(("?", "？"))]
    return list(dict.fromkeys(text for text in stated if num_words(text) >= _LEAST_WORDS))


def _shortened(text: str) -> str:
    """At most thirty words of a sentence, in whole clauses where it has them."""
    return best_clauses(text, "", _MOST_WORDS)


def _stored(text: str) -> str:
    """The text on one line, without lone surrogates: JSON can escape them, UTF-8 not store them."""
    return " ".join(_SURROGATE.sub("\ufffd", text).split())


def _as_json(items: Iterable[Any]) -> str:
    rows = [json.dumps(item, ensure_ascii=False) for item in items]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


_SUMMARY_WORDS = 80


@dataclass(frozen=True)
class ExtractSummary(OfChat[str]):
    """Summarize the chat, above all what the user tells and asks. The value is the text, stripped;
    a cut one counts."""

    name: ClassVar[str] = "extract_summary"
    max_reply_tokens: ClassVar[int] = 500
    assumed: ClassVar[str] = f"{_SUMMARY_WORDS} words"

    def extractive(self) -> str:
        return gist(" ".join(user_sentences(self.chat))) or gist(self.chat) or "Nothing was said."

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_SUMMARY_WORDS]) or "Nothing was said."


_SEPARATOR = re.compile("[;；]")
_LABEL = re.compile(
    r"\A[^\n;:：]{0,80}\bkey[ -]?(?:phrase|word|term)s?\b[^\n;:：]{0,80}[:：][*_]{0,2}\s*",
    re.IGNORECASE,
)
_NUM_PHRASES, _PHRASE_WORDS, _PHRASE_CHARS = 8, 3, 40
_NONE = "NONE"


@dataclass(frozen=True)
class ExtractKeyphrases(OfChat[tuple[str, ...]]):
    """Ask what the chat is about, in keyphrases. The value: each as written; () for none."""

    name: ClassVar[str] = "extract_keyphrases"
    max_reply_tokens: ClassVar[int] = 100
    assumed: ClassVar[str] = f"{_NUM_PHRASES} phrases of two words"

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        """The texts between semicolons or line ends, without labels and list markers. The last one
        of a cut reply is incomplete and counts only if there is no other."""
        return parse_lines(_SEPARATOR.sub("\n", _LABEL.sub("", reply.lstrip())), is_cut)

    def extractive(self) -> str:
        """The heaviest runs of words without stop words in the user's statements."""
        stated = user_sentences(self.chat) or [self.chat]
        weight = weights(stated)
        found = dict.fromkeys(phrase for text in stated for phrase in _phrases(text))
        merit = {phrase: sum(weight.get(term, 0.0) for term in terms(phrase)) for phrase in found}
        return _phrase_list(sorted(merit, key=lambda phrase: -merit[phrase])[:_NUM_PHRASES])

    def expected(self) -> str:
        return _phrase_list(spread_pieces([self.chat], _NUM_PHRASES, 2))


def _phrases(text: str) -> Iterator[str]:
    run: list[str] = []
    for word in re.findall(r"\w+|[^\w\s]", text):
        is_content = bool(terms(word)) and len(word) <= _PHRASE_CHARS
        if run and (not is_content or len(run) == _PHRASE_WORDS):
            yield " ".join(run)
            run = []
        if is_content:
            run.append(word)
    if run:
        yield " ".join(run)


def _phrase_list(phrases: list[str]) -> str:
    clean = (" ".join(_SEPARATOR.sub(" ", phrase).split()) for phrase in phrases)
    return "; ".join(phrase for phrase in clean if any(map(str.isalnum, phrase))) or _NONE


_OF_THE_USER = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|[Oo]ur|us)\b")
_MOST_FACTS = 40  # so many sentences of thirty words fit the budget


@dataclass(frozen=True)
class ExtractFacts(OfChatByExample[tuple[str, ...]]):
    """Ask what users state about themselves. The value: a fact each; () for none, which is
    legal."""

    name: ClassVar[str] = "extract_facts"
    max_reply_tokens: ClassVar[int] = 2000
    assumed: ClassVar[str] = _TYPICAL_ITEMS

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        """The strings of the JSON list, up to the cut of a cut one, without blank items and other
        values. None where nothing is left of a list that is not empty, or it cannot be read."""
        items = list_items(reply, is_cut)
        if items is None:
            return None
        texts = (_stored(item) for item in items if isinstance(item, str))
        return tuple(text for text in texts if text) or (None if items else ())

    def extractive(self) -> str:
        facts = [text for text in user_sentences(self.chat) if _OF_THE_USER.search(text)]
        return _as_json(map(_shortened, facts[:_MOST_FACTS]))

    def expected(self) -> str:
        return _as_json(text for text in _typical_items(self.chat) if text)


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
_MOST_EVENTS = 30  # so many sentences of thirty words fit the budget with their dates


@dataclass(frozen=True)
class ExtractEvents(OfChatByExample[tuple[Event, ...]]):
    """Ask for what happened to the user, or will, on days that chat and date tell. The value:
    (day as YYYY/MM/DD or "", event) each; () for none, which is legal."""

    name: ClassVar[str] = "extract_events"
    max_reply_tokens: ClassVar[int] = 2000
    assumed: ClassVar[str] = _TYPICAL_ITEMS

    def read(self, reply: str, is_cut: bool) -> tuple[Event, ...] | None:
        """The objects of the JSON list that have an `event`; of a cut list those before the cut. A
        `date` that is no single day becomes "". None where no such object is in the list, or it
        cannot be read."""
        items = list_items(reply, is_cut)
        if items is None:
            return None
        events = (_event(item) for item in items)
        return tuple(event for event in events if event) or (None if items else ())

    def extractive(self) -> str:
        """The user's sentences with a date, the name of a month, or a word like "today"."""
        events = [(self._day(text), text) for text in user_sentences(self.chat)]
        known = [(day, text) for day, text in events if day or _DATED.search(text)]
        return _event_list((day, _shortened(text)) for day, text in known[:_MOST_EVENTS])

    def _day(self, text: str) -> str:
        """The first day that a sentence states, or gives relative to the session's date."""
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
        return _event_list((_SOME_DAY, text) for text in _typical_items(self.chat) if text)


def _event(item: Any) -> Event | None:
    text = item.get("event") if isinstance(item, dict) else None
    if not isinstance(text, str) or not (event := _stored(text)):
        return None
    said = item.get("date")
    return (day_of(said) if isinstance(said, str) else "", event)


def _event_list(events: Any) -> str:
    return _as_json({"date": day, "event": text} for day, text in events)
