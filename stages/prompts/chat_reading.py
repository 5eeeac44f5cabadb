"""Prompts for the days that a question is about (LongMemEval section 5.4, figure 12), for a note on
a retrieved chat, and for the answer from such chats or notes (section 5.5, figure 13)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.chat_keys import CHAT, OfChat
from stages.prompts.passages import DATE, OPTIONS, QUESTION, Passage
from stages.prompts.replies import json_objects
from stages.text.chat_text import day_of, days_in
from stages.text.excerpts import best_sentences
from stages.text.ranking import rank, terms

TimeLimits = tuple[str, str]
"""First and last day, YYYY/MM/DD; "" where that end is open."""
NO_RANGE: TimeLimits = ("", "")
_NONE = re.compile(r"(?<!\w)(?:N/A|not applicable)(?!\w)", re.IGNORECASE)
_OPEN = {"", "n/a", "na", "none", "null", "not applicable"}
_NO_START = re.compile(r"\b(?:before|until|till|by|up to)\b", re.IGNORECASE)
_NO_END = re.compile(r"\b(?:after|since)\b", re.IGNORECASE)


@dataclass(frozen=True)
class TimeRange(Prompt[TimeLimits]):
    """In which days did that happen which the question asks about? The value: first and last day as
    YYYY/MM/DD, "" for an open end; `NO_RANGE` for N/A, where the question names no time.

    Free text: legal replies cannot be enumerated, as a first day after the last would be one.
    """

    name: ClassVar[str] = "time_range"
    max_reply_tokens: ClassVar[int] = 100  # ours; the authors' is not known
    question: str
    asked_at: str = ""  # the date of the question, where it has one
    with_examples: bool = False  # whether the prompt has ten of replies, of our own (appendix D)

    def read(self, reply: str, is_cut: bool) -> TimeLimits | None:
        """The days in the JSON object, or `N/A` outside of one. None where a limit is no single
        day, where the first day is after the last (either may be wrong), and where a reply
        contradicts itself."""
        found, rest = json_objects(reply)
        said = {_limits(value) for value in found if "start" in value or "end" in value}
        if _NONE.search(rest) and "{" not in rest:  # of a cut object it may be one limit only
            said.add(NO_RANGE)
        return said.pop() if len(said) == 1 else None

    def extractive(self) -> str:
        """The first and last full dates in the question, open after "before" or "since"; else
        N/A."""
        days = sorted(days_in(self.question))
        if not days:
            return "N/A"
        no_start = len(days) == 1 and _NO_START.search(self.question)
        no_end = len(days) == 1 and _NO_END.search(self.question)
        start, end = "" if no_start else days[0], "" if no_end and not no_start else days[-1]
        return _written(start, end)

    def expected(self) -> str:
        return _written("2023/05/01", "2023/05/31")

    @classmethod
    def samples(cls) -> tuple["TimeRange", ...]:
        dated = cls("What did I buy on 2023/05/02?", DATE, with_examples=True)
        return cls(QUESTION, DATE), cls(QUESTION), dated


def _written(start: str, end: str) -> str:
    said = ", ".join(f'"{key}": "{day}"' for key, day in (("start", start), ("end", end)) if day)
    return f"{{{said}}}"


def _limits(value: dict[str, Any]) -> TimeLimits | None:
    start, end = (_limit(value.get(key)) for key in ("start", "end"))
    if start is None or end is None or (start and end and start > end):
        return None
    return start, end


def _limit(said: Any) -> str | None:
    """The day; "" where the limit is open; None where it cannot be read."""
    if said is None or (isinstance(said, str) and said.strip().lower() in _OPEN):
        return ""
    return (day_of(said) if isinstance(said, str) else "") or None


NOTHING = "empty"  # the authors' word
_NOTE_WORDS = 60
_EMPTY = re.compile(r"\W*(?:notes?\b\W*)?(?:empty|none|n/a)\W*", re.IGNORECASE)


@dataclass(frozen=True)
class NoteOnChat(OfChat[str]):
    """Ask what the chat says about the question. The value is the note, stripped; "" where it has
    nothing on it."""

    name: ClassVar[str] = "note"
    max_reply_tokens: ClassVar[int] = 500
    is_whole: ClassVar[bool] = True  # it is all that the reader sees of the chat
    assumed: ClassVar[str] = f"{_NOTE_WORDS} words"
    question: str
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> str | None:
        """Any text; "" where the reply is `empty` and nothing else; None for an empty reply."""
        text = reply.strip()
        return "" if _EMPTY.fullmatch(text) else text or None

    def extractive(self) -> str:
        """The sentences that match the question best; `empty` where none shares a term with it."""
        shared = set(terms(self.chat)) & set(terms(self.question))
        found = best_sentences([self.chat], self.question, _NOTE_WORDS) if shared else ""
        return found or NOTHING

    def expected(self) -> str:
        return " ".join(self.chat.split()[:_NOTE_WORDS]) or NOTHING

    @classmethod
    def samples(cls) -> tuple["NoteOnChat", ...]:
        return (
            cls(CHAT, DATE, QUESTION, "2023/06/01 (Thu) 08:15"),
            cls(CHAT, "", QUESTION),
            cls("I rang the bell.", "", QUESTION, DATE),
        )


CHATS = (
    Passage("text", None, "[2023/05/02 (Tue) 10:01]\nuser: I moved to {{ Bern }}. <3>"),
    Passage("text", None, '{"date": "2023/05/09", "user": "{% My %} cat \\n rang the bell."}'),
)


@dataclass(frozen=True)
class AnswerFromChats(AnswerQuestion):
    """Answer the question from the passages: chats by date, each with its date in its text, or
    notes on them. Fields and value are `AnswerQuestion`'s."""

    name: ClassVar[str] = "answer_chats"
    max_reply_tokens: ClassVar[int] = 500

    @classmethod
    def samples(cls) -> tuple["AnswerFromChats", ...]:
        return (
            cls(CHATS, QUESTION, OPTIONS, answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=None),
            cls((), QUESTION, (), answer_words=8104, asked_at=DATE),
        )


_ANSWER = re.compile(
    r"^[^\w\n]{0,9}(?:(?:so|the|my)\W{1,3}){0,2}(?:final\s)?answer[*_ ]{0,4}[:：]"
    r"|^(?:#{1,6}[ \t]{1,3}|[*_]{1,3})(?:final\s)?answer[*_]{0,3}[ \t]{0,9}$",  # a heading
    re.I | re.M,
)
_BOLD = re.compile(r"\A[*_]{1,3}(?=\s)")  # the end of **Answer:**
_PLACEHOLDER = re.compile(r"<[^<>]*\s[^<>]*>")  # of the prompt's form
_MOST_NOTES, _WORDS_A_CHAT = 10, 25  # so many fit the budget beside the answer
_EXPECTED_NOTES = 150  # words


@dataclass(frozen=True)
class AnswerWithNotes(AnswerFromChats):
    """Note what the chats say about the question, then answer it from the notes. Fields and value
    are `AnswerQuestion`'s; no reply is constrained, as notes are free text."""

    name: ClassVar[str] = "answer_chats_con"
    max_reply_tokens: ClassVar[int] = 800
    form: ClassVar[str | None] = None
    assumed: ClassVar[str] = f"{_EXPECTED_NOTES} words of notes, then as many as are asked for"

    def read(self, reply: str, is_cut: bool) -> int | str | None:
        """The text after the last `Answer:` that opens a line and is followed by text. None without
        one, as notes and answer could not be told apart."""
        parts = [_stated(part) for part in _ANSWER.split(reply)[1:]]
        texts = [part for part in parts if not _PLACEHOLDER.fullmatch(part)]
        said = [text for text in texts if any(map(str.isalnum, text))]
        if not said:
            return None
        return super().read(f"Answer: {said[-1]}" if self.options else said[-1], is_cut)

    def legal(self, form: str) -> Constraint | None:
        return None

    def extractive(self) -> str:
        """One sentence from each of the ten chats that match the question best, then the answer."""
        texts = [passage.text for passage in self.passages]
        query = "\n".join([self.question, *self.options])
        wanted = set(terms(query))
        best = sorted(i for i in rank(texts, query)[:_MOST_NOTES] if wanted & set(terms(texts[i])))
        notes = [f"- {best_sentences([texts[i]], query, _WORDS_A_CHAT)}" for i in best]
        answer = super().extractive().removeprefix("Answer: ")
        return "\n".join(["Notes:", *(notes or ["- nothing on it"]), f"Answer: {answer}"])

    def expected(self) -> str:
        notes = " ".join(["note"] * _EXPECTED_NOTES)
        return f"{notes}\nAnswer: {super().expected().removeprefix('Answer: ')}"

    @classmethod
    def samples(cls) -> tuple["AnswerWithNotes", ...]:
        return (
            cls(CHATS, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, OPTIONS, answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=None),
            cls((), QUESTION, (), answer_words=8104, asked_at=DATE),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {}


def _stated(part: str) -> str:
    """The text without bold marks that were opened before it."""
    text = _BOLD.sub("", part).strip()
    return text.removesuffix("**") if text.count("**") == 1 else text
