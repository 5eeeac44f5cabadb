"""Which single page to read again next, or STOP (ReadAgent section 3.2, ReadAgent-S)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.passages import (
    DATE,
    MEMORY,
    OPTIONS,
    QUESTION,
    Passage,
    gist_numbers,
    page_numbers,
    ranked_pages,
    speaking_of,
)
from stages.prompts.parsing.replies import (
    NUMBERS,
    in_english_pages,
    is_declined,
    is_requested,
    one_of,
    sentence_around,
    settled,
)

STOP = "STOP"
_Turn = int | Literal["stop"]
_MOST_MENTIONS = 1_000  # of pages, whose sentences are looked at
_EXPECTED_TURNS = 3  # before a look-up stops
_PAGE = re.compile(
    r"\b(?:pages?|pg\b\.?|p\.)(?:\s+(?:number\b|no\b\.?))?\s*+(?:[:=\[<({]\s?){0,3}+"
    r"(?P<page>\d{1,9})(?!\d)",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"\W*{_PAGE.pattern}[\])>]?\s*(?:[,(]|(?:to|for|as|because|since)\b)", re.I)
# In small letters "stop" is a word like any other, unless it is a sentence or opens a line.
_SAID_STOP = re.compile(
    r"(?:\A|[.!?:\n])[\s\[<(]{0,20}(?i:stop)(?=[\s\])>]{0,20}(?:[.!\n]|\Z))"
    r"|(?:\A|\n)\W{0,9}STOP(?=\s?[-–—:;(])"
    r"|\b(?i:i\s+(?:want|would\s+like)\s+to\s+stop)\b",
)
_STOP = re.compile(r"\bSTOP\b|^[ \t]*(?i:stop)\b(?!\W{1,3}no\b)", re.MULTILINE)
# What makes of a STOP what might be, or must not be.
_CONDITION = re.compile(
    r"\A\W{0,9}(?:if|once|when|as\s+soon\s+as|unless)\b|\bor\s+(?:(?:else|to|just|i)\s+)?\W{0,5}\Z"
    r"|\b(?:not|dont|cannot|cant|never|wont)\s+(?:yet\s+)?(?:(?:want|need|have|wish|ready)\s+to\s+)?\Z",
    re.IGNORECASE,
)
_CONDITION_AFTER = re.compile(
    r"[\s\])>]{0,9}(?:if|once|when|as\s+soon\s+as|unless|after|until)\b", re.IGNORECASE
)
_PAGE_CONDITION = re.compile(
    r"\A\W{0,9}(?:if|once|when|after|unless|before)\b[^,]*\Z", re.IGNORECASE
)
_ANOTHER = re.compile(r"[\])>}]?\s{0,3}(?:,|&|/|and\b|or\b)\s{0,3}\d")
_OR_STOP = re.compile(rf"{_PAGE.pattern}[\])>}}]?\W{{0,3}}or\s+\W?STOP\b", re.IGNORECASE)
_NUMBER_ALONE = re.compile(
    r"(?i:(?:final\s+)?answer\s?[:=]\s?)?[\[<({]?\s*(?P<page>\d{1,9})\s*[\])>}]?\.?"
)


@dataclass(frozen=True)
class SequentialLookUp(Prompt[int | Literal["stop"]]):
    """Which single page to read again, or STOP? The value is a page number or "stop"."""

    name: ClassVar[str] = "look_up_s"
    max_reply_tokens: ClassVar[int] = 128
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Page {}"
    others: ClassVar[tuple[str, ...]] = (STOP,)
    assumed: ClassVar[str] = f"STOP after {_EXPECTED_TURNS} pages"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    pages_read: tuple[int, ...]  # page numbers, in the order they were asked for
    refused: tuple[int, ...]  # page numbers just asked for in vain: read already or not there
    previous_answer: str = ""  # what was answered from the pages read so far, where families ask
    asked_at: str = ""  # the date of the question, where it has one
    last_was_unread: bool = False  # the last reply to this very question

    def read(self, reply: str, is_cut: bool) -> int | Literal["stop"] | None:
        return parse_page_or_stop(reply, is_cut)

    def is_legal(self, value: _Turn) -> bool:
        return value == "stop" or value in {*page_numbers(self.passages)} - self._taken()

    def legal(self, form: str) -> Constraint:
        """One of the pages that are left, or STOP."""
        return one_of(
            form, [n for n in page_numbers(self.passages) if n not in self._taken()], *self.others
        )

    def _taken(self) -> set[int]:
        return {*self.pages_read, *self.refused}

    def extractive(self) -> str:
        """The best page not yet asked for; STOP where none is left that shares a term."""
        query = "\n".join([self.question, *self.options])
        left = speaking_of(self.passages, query) - self._taken()
        best = next((page for page in ranked_pages(self.passages, query) if page in left), None)
        return STOP if best is None else f"Page {best}"

    def expected(self) -> str:
        """A page from the middle of those left, STOP after a few."""
        left = [n for n in gist_numbers(self.passages) if n not in self._taken()]
        is_over = len(self.pages_read) >= _EXPECTED_TURNS or not left
        return STOP if is_over else f"Page {left[len(left) // 2]}"

    @classmethod
    def samples(cls) -> tuple["SequentialLookUp", ...]:
        return (
            cls(MEMORY, QUESTION, (), pages_read=(), refused=()),
            cls(MEMORY, QUESTION, OPTIONS, pages_read=(), refused=()),
            cls(MEMORY, QUESTION, OPTIONS, pages_read=(6101, 6104), refused=(8102, 8103)),
            cls(MEMORY, QUESTION, (), (6101,), (), "The sexton {{ rang }} <2>."),
            cls(MEMORY, QUESTION, (), (6101,), (8102,), asked_at=DATE),
            cls(MEMORY, QUESTION, (), (), (), last_was_unread=True),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {str(number): number for number in NUMBERS}


def parse_page_or_stop(reply: str, is_cut: bool = False) -> int | Literal["stop"] | None:
    """The page asked for, or "stop": `Page 3`, `I want to look up Page [3]`, `STOP`.

    What is asked for ("look up Page 3", a sentence STOP) goes before a page that opens the reply,
    that before pages mentioned in passing, unless the reply was cut. None where two differ, and for
    a reply that mentions pages more than a thousand times; a page said not to be needed does not
    count, nor a STOP under a condition.
    """
    text = in_english_pages(plain_text(reply))
    mentioned = [*islice(_PAGE.finditer(text), _MOST_MENTIONS + 1)]
    if len(mentioned) > _MOST_MENTIONS or _OR_STOP.search(text):
        return None
    text = _STOP.sub(partial(_unless_conditional, text), text)
    pages = [page for page in mentioned if _is_alone(text, page) and not is_declined(text, page)]
    if is_cut:  # also within a number
        pages = [page for page in pages if page.end() < len(text)]
    opening = _OPENING.match(text)
    stated: list[_Turn] = [int(page["page"]) for page in pages if is_requested(text, page)]
    stated += ["stop"] * bool(_SAID_STOP.search(text))
    named: list[_Turn] = [int(page["page"]) for page in pages]
    named += ["stop"] * bool(_STOP.search(text))
    if is_cut:
        named = []
    alone = _NUMBER_ALONE.fullmatch(text)
    return settled(
        stated,
        [int(opening["page"])] if opening and pages and opening["page"] == pages[0]["page"] else [],
        named,
        [int(alone["page"])] if alone else [],
    )


def _is_alone(text: str, page: re.Match[str]) -> bool:
    """True if no other number is named with the page, nor a condition before it."""
    is_one = not _ANOTHER.match(text, page.end())
    return is_one and not _PAGE_CONDITION.match(sentence_around(text, page)[0])


def _unless_conditional(text: str, stop: re.Match[str]) -> str:
    """The STOP; as many other signs where its sentence makes it depend on something."""
    before, after = sentence_around(text, stop)
    is_asked = text.startswith("?", stop.end())
    is_conditional = is_asked or _CONDITION.search(before) or _CONDITION_AFTER.match(after)
    return "~" * len(stop[0]) if is_conditional else stop[0]
