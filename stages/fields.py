"""What each prompt is filled with: one record per prompt. Templates loop over these.

References, evidence and the right option are never fields of a reader's prompt.
Page numbers here are the family's (`first_page` 0 or 1), not page indexes.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pipeline.prompts import Fields


@dataclass(frozen=True, slots=True)
class Labelled:
    """A paragraph of a pagination window and the label that stands after it, if any."""

    text: str
    label: int | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the reader's context: a page's gist, a raw page, or a run of raw text."""

    kind: Literal["gist", "page", "text"]
    page_number: int | None  # null for text
    text: str


@dataclass(frozen=True, slots=True)
class BreakPoint(Fields):
    """Where to end the page that starts with the first paragraph?"""

    prompt: ClassVar[str] = "break_point"
    preceding: str  # the text just before the window, for orientation; may be empty
    paragraphs: tuple[Labelled, ...]


@dataclass(frozen=True, slots=True)
class ShortenPage(Fields):
    """Shorten one page to its gist."""

    prompt: ClassVar[str] = "gist"
    page: str


@dataclass(frozen=True, slots=True)
class ParallelLookUp(Fields):
    """Which pages, at most `max_pages`, to read again? (ReadAgent-P)"""

    prompt: ClassVar[str] = "look_up_p"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    max_pages: int
    asked_at: str = ""  # the date of the question, where it has one


@dataclass(frozen=True, slots=True)
class SequentialLookUp(Fields):
    """Which single page to read again, or STOP? (ReadAgent-S)"""

    prompt: ClassVar[str] = "look_up_s"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    pages_read: tuple[int, ...]  # page numbers, in the order they were asked for
    refused: tuple[int, ...]  # page numbers just asked for in vain: read already or not there
    previous_answer: str = ""  # what was answered from the pages read so far, where families ask
    asked_at: str = ""  # the date of the question, where it has one


@dataclass(frozen=True, slots=True)
class AnswerQuestion(Fields):
    """Answer the question from the passages (none for a closed-book answer)."""

    prompt: ClassVar[str] = "answer"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    answer_words: int  # about how long a free-form answer should be
    asked_at: str = ""  # the date of the question, where it has one


@dataclass(frozen=True, slots=True)
class StrictRating(Fields):
    """Does the answer agree with the reference? YES or NO"""

    prompt: ClassVar[str] = "rate_strict"
    question: str
    answer: str
    reference: str


@dataclass(frozen=True, slots=True)
class PermissiveRating(Fields):
    """Does the answer agree with the reference? Yes; Yes, partially; No"""

    prompt: ClassVar[str] = "rate_permissive"
    question: str
    answer: str
    reference: str


PROMPTS: dict[str, type[Fields]] = {
    fields.prompt: fields
    for fields in (
        BreakPoint, ShortenPage, ParallelLookUp, SequentialLookUp,
        AnswerQuestion, StrictRating, PermissiveRating,
    )
}  # fmt: skip
