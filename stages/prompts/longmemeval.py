"""LongMemEval's prompts: keys of chats (sections 5.3 and 5.4, appendix D, figure 11), the days that
questions are about (figure 12), notes and answers from the chats found (section 5.5, figure 13)."""

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Any, ClassVar, Generic, TypeVar

from stages.prompts.answer import DATE, OPTIONS, QUESTION, AnswerQuestion, Passage
from stages.prompts.parsing import Filled, Fills, json_at, list_items, parse_lines
from stages.text.chat_text import MONTH, day_of, days_in
from stages.text.excerpts import best_clauses, best_sentences, gist, sentences, spread_pieces
from stages.text.ranking import rank, terms, weights
from stages.text.words import PAGE_BREAK, num_words, without_header

T = TypeVar("T")
Event = tuple[str, str]  # the day as YYYY/MM/DD, "" where it is not known; what happened
TimeLimits = tuple[str, str]  # first and last day, YYYY/MM/DD; "" where that end is open
NO_RANGE: TimeLimits = ("", "")
NOTHING = "empty"  # the authors' word
# What the extractive engine finds in chats and questions. The maxima fit the reply budgets.
_NEXT_TURN = re.compile(r"\n\n(?=(?:user|assistant|system):)")
_ROLE = re.compile(r"(?:user|assistant|system):\s*")
_OF_THE_USER = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|[Oo]ur|us)\b")
_DATED = re.compile(
    rf"(?i)\b(?:{MONTH}\.?\s\d|\d(?:st|nd|rd|th)?\s(?:of\s)?{MONTH}\b"
    rf"|(?:in|on|since|until|last|this|next|early|late|mid)[\s-]{MONTH}\b)"
)
_FROM_TODAY = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
_RELATIVE = re.compile(rf"\b(?:{'|'.join(_FROM_TODAY)})\b", re.IGNORECASE)
_NO_START = re.compile(r"\b(?:before|until|till|by|up to)\b", re.IGNORECASE)
_NO_END = re.compile(r"\b(?:after|since)\b", re.IGNORECASE)
_LEAST_WORDS, _MOST_WORDS = 3, 30  # of a sentence that is taken over; of a longer one its clauses
_MOST_FACTS, _MOST_EVENTS = 40, 30  # sentences of that length
_NUM_PHRASES, _PHRASE_WORDS, _PHRASE_CHARS = 8, 3, 40
_MOST_NOTES, _WORDS_A_CHAT = 10, 25  # beside the answer
# Our assumptions of a model's reply: its words; an item of 12 words for each 100 words of chat.
_SUMMARY_WORDS, _NOTE_WORDS, _ALL_NOTES_WORDS = 80, 60, 150
_WORDS_AN_ITEM, _ITEM_WORDS = 100, 12
# Forms of replies.
_SEPARATOR = re.compile("[;；]")
_LABEL = re.compile(
    r"(?i)\A[^\n;:：]{0,80}\bkey[ -]?(?:phrase|word|term)s?\b[^\n;:：]{0,80}[:：][*_]{0,2}\s*"
)
_OBJECT = re.compile(r"\{[^{}]*\}")
_NONE = re.compile(r"(?<!\w)(?:N/A|not applicable)(?!\w)", re.IGNORECASE)
_OPEN = {"", "n/a", "na", "none", "null", "not applicable"}
_EMPTY = re.compile(r"\W*(?:notes?\b\W*)?(?:empty|none|n/a)\W*", re.IGNORECASE)
_ANSWER = re.compile(
    r"(?im)^[^\w\n]{0,9}(?:(?:so|the|my)\W{1,3}){0,2}(?:final\s)?answer[*_ ]{0,4}[:：]"
    r"|^(?:#{1,6}[ \t]{1,3}|[*_]{1,3})(?:final\s)?answer[*_]{0,3}[ \t]{0,9}$"  # a heading
)
_BOLD = re.compile(r"\A[*_]{1,3}(?=\s)")  # the end of **Answer:**
_PLACEHOLDER = re.compile(r"<[^<>]*\s[^<>]*>(?:\*\*)?")  # of the prompt's form
# Samples.
_CHAT = (
    "user: I moved to {{ Bern }} on 2023/05/02. <3> Any tips?\n\n"
    "assistant: {% Welcome %}, try my \\n favourite café.\n\nuser: My cat {# Max #} is 3."
)
_CHATS = (
    Passage("text", None, "[2023/05/02 (Tue) 10:01]\nuser: I moved to {{ Bern }}. <3>"),
    Passage("text", None, '{"date": "2023/05/09", "user": "{% My %} cat \\n rang the bell."}'),
)


@dataclass(frozen=True)
class OfChat(Filled[T], Generic[T]):
    """Base class of prompts that show a session of a chat, a round of one, or the user's side
    alone, with its turns as paragraphs, `user: ...`.

    They are not whole: a key made of a cut reply still finds its chat.
    """

    fills: ClassVar[Fills] = ((_CHAT, DATE), (_CHAT, ""), ("I rang the bell today.", ""))
    chat: str
    said_at: str  # the session's date; "" without one


def user_sentences(chat: str) -> list[str]:
    """The user's statements, one sentence each, without repeats: three words or more, no questions.
    Where no turn is marked as the user's, all turns count."""
    turns = _NEXT_TURN.split(without_header(PAGE_BREAK + chat.strip()).strip())
    turns = [turn for turn in turns if turn.startswith("user:")] or turns
    said = [s.text for turn in turns for s in sentences(_ROLE.sub("", turn, count=1))]
    stated = [text for text in said if not text.endswith(("?", "？"))]
    return list(dict.fromkeys(text for text in stated if num_words(text) >= _LEAST_WORDS))


class ExtractSummary(OfChat[str]):
    """Summarize the chat, above all what the user tells and asks. A cut summary counts. Asked by
    the stage `expand`."""

    name = "extract_summary"
    max_reply_tokens = 500
    assumed = f"{_SUMMARY_WORDS} words"

    def extractive(self) -> str:
        return gist(" ".join(user_sentences(self.chat))) or gist(self.chat) or "Nothing was said."

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_SUMMARY_WORDS]) or "Nothing was said."


class ExtractKeyphrases(OfChat[tuple[str, ...]]):
    """Ask what the chat is about, in keyphrases. The value: each as written; () for none. Asked by
    the stage `expand`."""

    name = "extract_keyphrases"
    max_reply_tokens = 100
    assumed = f"{_NUM_PHRASES} phrases of two words"

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        """The texts between semicolons or line ends, without labels and list markers. The last one
        of a cut reply is incomplete and counts only if there is no other."""
        return parse_lines(_SEPARATOR.sub("\n", _LABEL.sub("", reply.lstrip())), is_cut)

    def extractive(self) -> str:
        """The heaviest runs of words without stop words in the user's statements."""
        stated = user_sentences(self.chat) or [self.chat]
        weight = weights(stated)
        phrases = dict.fromkeys(phrase for text in stated for phrase in _phrases(text))
        merit = {phrase: sum(weight.get(term, 0.0) for term in terms(phrase)) for phrase in phrases}
        return _phrase_list(sorted(merit, key=lambda phrase: -merit[phrase])[:_NUM_PHRASES])

    def expected(self) -> str:
        return _phrase_list(spread_pieces([self.chat], _NUM_PHRASES, 2))


def _phrases(text: str) -> Iterator[str]:
    words = re.findall(r"\w+|[^\w\s]", text)
    for is_content, run in groupby(words, lambda w: bool(terms(w)) and len(w) <= _PHRASE_CHARS):
        content = list(run) if is_content else []
        for start in range(0, len(content), _PHRASE_WORDS):
            yield " ".join(content[start : start + _PHRASE_WORDS])


def _phrase_list(phrases: list[str]) -> str:
    clean = (" ".join(_SEPARATOR.sub(" ", phrase).split()) for phrase in phrases)
    return "; ".join(phrase for phrase in clean if any(map(str.isalnum, phrase))) or "NONE"


@dataclass(frozen=True)
class ListFromChat(OfChat[tuple[T, ...]], Generic[T]):
    """Base class of prompts for a JSON list, to which the authors add ten examples of replies
    (appendix D). () for none, which is legal."""

    max_reply_tokens = 2000
    assumed = f"an item of {_ITEM_WORDS} words per {_WORDS_AN_ITEM} words of chat"
    fills = ((_CHAT, DATE), (_CHAT, ""), ("I rang the bell today.", "", True))
    with_examples: bool = False  # whether the prompt has ten, of our own

    @abstractmethod
    def item(self, value: Any) -> T | None:
        """The item for a value of the JSON list; None if the value cannot be one."""

    def read(self, reply: str, is_cut: bool) -> tuple[T, ...] | None:
        """The items of the JSON list; of a list that is cut off, those before the cut. None if
        there is no list that can be read, or none of its values is an item."""
        values = list_items(reply, is_cut)
        if values is None:
            return None
        items = tuple(item for value in values if (item := self.item(value)))
        return items or (None if values else ())

    def typical_items(self) -> list[str]:
        """The first twelve of each hundred words of the chat."""
        words = self.chat.split()
        starts = range(0, len(words), _WORDS_AN_ITEM)
        return [" ".join(words[start : start + _ITEM_WORDS]) for start in starts]


def _as_json(items: Iterable[Any]) -> str:
    rows = [json.dumps(item, ensure_ascii=False) for item in items]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


class ExtractFacts(ListFromChat[str]):
    """Ask what users state about themselves. The value: a fact each. Asked by the stage
    `expand`."""

    name = "extract_facts"

    def item(self, value: Any) -> str | None:
        return " ".join(value.split()) if isinstance(value, str) else None

    def extractive(self) -> str:
        facts = [text for text in user_sentences(self.chat) if _OF_THE_USER.search(text)]
        return _as_json(best_clauses(text, "", _MOST_WORDS) for text in facts[:_MOST_FACTS])

    def expected(self) -> str:
        return _as_json(self.typical_items())


class ExtractEvents(ListFromChat[Event]):
    """Ask for what happened to the user, or will, on days that chat and date tell. Asked by the
    stage `expand`."""

    name = "extract_events"

    def item(self, value: Any) -> Event | None:
        """An object that has an `event`; a `date` that is no single day becomes ""."""
        text = value.get("event") if isinstance(value, dict) else None
        if not isinstance(text, str) or not (event := " ".join(text.split())):
            return None
        said = value.get("date")
        return (day_of(said) if isinstance(said, str) else "", event)

    def extractive(self) -> str:
        """The user's sentences with a date, the name of a month, or a word like "today"."""
        events = [(self._day(text), text) for text in user_sentences(self.chat)]
        dated = [(day, text) for day, text in events if day or _DATED.search(text)]
        return _as_json(
            {"date": day, "event": best_clauses(text, "", _MOST_WORDS)}
            for day, text in dated[:_MOST_EVENTS]
        )

    def _day(self, text: str) -> str:
        """The first day that a sentence states, or gives relative to the session's date."""
        stated, relative = days_in(text), _RELATIVE.search(text)
        today = day_of(self.said_at)
        if stated or not relative or not today:
            return stated[0] if stated else ""
        day = date.fromisoformat(today.replace("/", "-"))
        day += timedelta(_FROM_TODAY[relative[0].lower()])
        return day.isoformat().replace("-", "/")

    def expected(self) -> str:
        return _as_json({"date": "2023/05/30", "event": text} for text in self.typical_items())


@dataclass(frozen=True)
class TimeRange(Filled[TimeLimits]):
    """In which days did that happen which the question asks about? The value: first and last day as
    YYYY/MM/DD, "" for an open end; `NO_RANGE` for N/A, where the question names no time. Asked by
    the stage `queries` (kind time_range).

    Free text: legal replies cannot be enumerated, as a first day after the last would be one.
    """

    name = "time_range"
    max_reply_tokens = 100  # ours; the authors' is not known
    fills = ((QUESTION, DATE), (QUESTION,), ("What did I buy on 2023/05/02?", DATE, True))
    question: str
    asked_at: str = ""  # the date of the question, where it has one
    with_examples: bool = False  # whether the prompt has ten of replies, of our own (appendix D)

    def read(self, reply: str, is_cut: bool) -> TimeLimits | None:
        """The days in the JSON object, or `N/A` outside of one. None where a limit is no single
        day, where the first day is after the last (either may be wrong), and where a reply
        contradicts itself."""
        rest = _OBJECT.sub(" ", reply)
        limits: set[TimeLimits | None] = set()
        if _NONE.search(rest) and "{" not in rest:  # of a cut object it may be one limit only
            limits.add(NO_RANGE)
        for value, _ in (json_at(text, 0) for text in _OBJECT.findall(reply)):
            if isinstance(value, dict) and {"start", "end"} & value.keys():
                start, end = _limit(value.get("start")), _limit(value.get("end"))
                is_range = start is not None and end is not None
                is_range = is_range and not (start and end and start > end)
                limits.add((start or "", end or "") if is_range else None)
        return limits.pop() if len(limits) == 1 else None

    def extractive(self) -> str:
        """The first and last full dates in the question, open after "before" or "since"; else
        N/A."""
        days = sorted(days_in(self.question))
        if not days:
            return "N/A"
        limits = {"start": days[0], "end": days[-1]}
        if len(days) == 1 and _NO_START.search(self.question):
            del limits["start"]
        elif len(days) == 1 and _NO_END.search(self.question):
            del limits["end"]
        return json.dumps(limits)

    def expected(self) -> str:
        return json.dumps({"start": "2023/05/01", "end": "2023/05/31"})


def _limit(said: Any) -> str | None:
    """The day; "" where the limit is open; None where it cannot be read."""
    if said is None or (isinstance(said, str) and said.strip().lower() in _OPEN):
        return ""
    return (day_of(said) if isinstance(said, str) else "") or None


@dataclass(frozen=True)
class NoteOnChat(OfChat[str]):
    """Ask what the chat says about the question. The value is the note, stripped; "" where it has
    nothing on it. Asked by the stage `notes`."""

    name = "note"
    max_reply_tokens = 500
    is_whole = True  # it is all that the reader sees of the chat
    assumed = f"{_NOTE_WORDS} words"
    fills = (
        (_CHAT, DATE, QUESTION, "2023/06/01 (Thu) 08:15"),
        (_CHAT, "", QUESTION),
        ("I rang the bell.", "", QUESTION, DATE),
    )
    question: str
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> str | None:
        """Any text; "" where the reply is `empty` and nothing else; None for an empty reply."""
        text = reply.strip()
        return "" if _EMPTY.fullmatch(text) else text or None

    def extractive(self) -> str:
        """The sentences that match the question best; `empty` where none shares a term with it."""
        if not set(terms(self.chat)) & set(terms(self.question)):
            return NOTHING
        return best_sentences([self.chat], self.question, _NOTE_WORDS) or NOTHING

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_NOTE_WORDS]) or NOTHING


class AnswerFromChats(AnswerQuestion):
    """Answer the question from the passages: chats by date, each with its date in its text, or
    notes on them. Fields and value are `AnswerQuestion`'s. Asked by the stages `answer` (kinds
    chats, expanded_chats, notes)."""

    name = "answer_chats"
    max_reply_tokens = 500

    fills: ClassVar[Fills] = (
        (_CHATS, QUESTION, OPTIONS, None, DATE),
        (_CHATS, QUESTION, (), 8104, DATE),
        (_CHATS, QUESTION, (), None),
        ((), QUESTION, (), 8104, DATE),
    )


class AnswerWithNotes(AnswerFromChats):
    """Note what the chats say about the question, then answer it from the notes. Fields and value
    are `AnswerQuestion`'s; no reply is constrained, as notes are free text. Asked by the same
    stages as `answer_chats`, where their settings say so."""

    name = "answer_chats_con"
    fills = (AnswerFromChats.fills[1], AnswerFromChats.fills[0], *AnswerFromChats.fills[2:])
    max_reply_tokens = 800
    form = None
    assumed = f"{_ALL_NOTES_WORDS} words of notes, then as many as are asked for"

    def read(self, reply: str, is_cut: bool) -> int | str | None:
        """The text after the last `Answer:` that opens a line and is followed by text, without bold
        marks that were opened before it. None if there is none: then notes and answer cannot be
        told apart."""
        said = []
        for part in _ANSWER.split(reply)[1:]:
            text = _BOLD.sub("", part).strip()
            text = text.removesuffix("**") if text.count("**") == 1 else text
            if any(map(str.isalnum, text)) and not _PLACEHOLDER.fullmatch(text):
                said.append(text)
        if not said:
            return None
        return super().read(f"Answer: {said[-1]}" if self.options else said[-1], is_cut)

    def extractive(self) -> str:
        """One sentence from each of the ten chats that match the question best, then the answer."""
        texts, query = self.texts(), self.query()
        wanted = set(terms(query))
        best = sorted(i for i in rank(texts, query)[:_MOST_NOTES] if wanted & set(terms(texts[i])))
        notes = [f"- {best_sentences([texts[i]], query, _WORDS_A_CHAT)}" for i in best]
        answer = super().extractive().removeprefix("Answer: ")
        return "\n".join(["Notes:", *(notes or ["- nothing on it"]), f"Answer: {answer}"])

    def expected(self) -> str:
        notes = " ".join(["note"] * _ALL_NOTES_WORDS)
        return f"{notes}\nAnswer: {super().expected().removeprefix('Answer: ')}"
