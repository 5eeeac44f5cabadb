"""Prompts for texts to search for: clues from a memory of the document (MemoRAG section 2), and its
baselines HyDE (arXiv 2212.10496, section 3) and RQ-RAG (arXiv 2404.00610, for any model)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar, Generic, TypeVar

from stages.prompts.answer import DATE, MEMORY, OPTIONS, QUESTION, TEXT_RUNS, OfPassages
from stages.prompts.parsing import Filled, Fills, parse_lines
from stages.text.excerpts import (
    best_sentences,
    central_sentences,
    gist,
    relevant_sentences,
    spread_pieces,
)
from stages.text.ranking import terms
from stages.text.words import num_words, word_spans

T = TypeVar("T")
_SHARE = 0.1  # of a chunk's words: the budget is an eighth of its tokens
# Our assumption: three lines, about as many as the paper's longer examples have (tables 1 to 4).
_LINES, _LINE_WORDS = 3, 12
# The extractive engine's replies: the number of lines, the least and the most words of each; all
# fit the budgets.
_NUM_SPANS, _SPAN_WORDS = 3, (8, 25)
_NUM_POINTS, _POINT_WORDS = 8, (12, 40)
_ASKED_WORDS, _ADDED_WORDS = 12, 5  # in each of three questions
_DRAFT_WORDS, _PASSAGE_WORDS = 30, 100
_MOST_PARTS = 4
_BETWEEN = re.compile(r"\s+and\s+|,(?!\d)|[;?，；？、]", re.IGNORECASE)  # not in 1,000
_ASKING = re.compile(r"\s*(?:who|whom|whose|what|which|when|where|why|how)\b\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ChunkGist(Filled[str]):
    """Shorten one chunk to its gist (MemoRAG-Lite, whose memory is the gists of chunks of 4,096
    tokens). Asked by the stage `memorize` (kind gists)."""

    name = "gist_chunk"
    max_reply_tokens = 512
    is_whole = True
    assumed = f"{100 * _SHARE:.0f}% of the chunk"
    fills = (("The bell {{ rings }}.\n\n{% twice %} <3>",),)
    chunk: str

    def extractive(self) -> str:
        """The most central sentences; for a short chunk a gist of up to 40 words, as for a page."""
        words = round(_SHARE * num_words(self.chunk))
        return best_sentences([self.chunk], "", words) if words > 40 else gist(self.chunk)

    def expected(self) -> str:
        return self.chunk[: max(1, round(_SHARE * len(self.chunk)))].strip()


@dataclass(frozen=True)
class FromMemory(OfPassages[T], Generic[T]):
    """Base class of prompts that show a memory: a text or its gists. The stage `memorize` leaves
    room for them."""

    fills: ClassVar[Fills] = (
        (MEMORY, QUESTION, ()),
        (MEMORY, QUESTION, OPTIONS, DATE),
        (TEXT_RUNS, QUESTION, OPTIONS),
    )
    asked_at: str = ""  # the date of the question, where it has one


class Lines(Filled[tuple[str, ...]]):
    """Base class of prompts whose value is lines to search for; () for none."""

    assumed = f"{_LINES} lines of {_LINE_WORDS} words"

    def read(self, reply: str, is_cut: bool) -> tuple[str, ...] | None:
        return parse_lines(reply, is_cut)


def _numbered(lines: Iterable[str]) -> str:
    """A numbered list of the lines that have a letter or digit; `NONE` without."""
    said = [line for line in lines if any(map(str.isalnum, line))]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(said, 1)) or "NONE"


class LinesFromMemory(Lines, FromMemory[tuple[str, ...]]):
    """Base class of prompts for lines to search for, which show a memory."""

    def expected(self) -> str:
        return _numbered(spread_pieces([*self.texts(), self.query()], _LINES, _LINE_WORDS))


class ClueSpans(LinesFromMemory):
    """Which pieces of the text (spans) may have the answer (text evidence)? The value: one a line,
    as recalled, so they need not stand in the text. Asked by the stage `queries` (kind clues)."""

    name = "clue_spans"
    max_reply_tokens = 128

    def extractive(self) -> str:
        return _numbered(relevant_sentences(self.texts(), self.query(), _NUM_SPANS, _SPAN_WORDS))


class ClueQuestions(LinesFromMemory):
    """Which more concrete questions (surrogate queries) together lead to the answer? The value: one
    a line. Asked by the stage `queries` (kind clues)."""

    name = "clue_questions"
    max_reply_tokens = 128

    def extractive(self) -> str:
        """The question three times, each with the longest words that one of the best sentences adds
        to it, in sentence order; the question alone where none adds a word."""
        words = word_spans(self.question)[:_ASKED_WORDS]
        question = " ".join(self.question[: words[-1][1] if words else 0].split()).rstrip("?？")
        seen = set(terms(self.query()))
        lines = []
        for best in relevant_sentences(self.texts(), self.query(), _NUM_SPANS, _SPAN_WORDS):
            in_order = dict.fromkeys(re.findall(r"\w+", best))
            new = [word for word in in_order if not seen.issuperset(terms(word))]
            longest = sorted(new, key=lambda word: -len(word))[:_ADDED_WORDS]
            if longest:
                lines.append(f"{question}: {', '.join(word for word in new if word in longest)}?")
                seen.update(terms(best))
        return _numbered(lines or ([f"{question}?"] if question else []))


class KeyPoints(LinesFromMemory):
    """Ask for the key points of the text. The value: one a line. `question` is the request for a
    summary; "" if there is none. Asked by the stage `queries` (kind clues)."""

    name = "key_points"
    max_reply_tokens = 512
    fills = (*FromMemory.fills, (MEMORY, "", ()))

    def extractive(self) -> str:
        return _numbered(central_sentences(self.texts(), _NUM_POINTS, _POINT_WORDS))


class DraftAnswer(FromMemory[str]):
    """Answer in brief from what is remembered, even if details may be wrong. The value is the
    text, stripped, also of a question with options. Asked by the stage `queries` (kind clues)."""

    name = "draft_answer"
    max_reply_tokens = 128
    assumed = f"{_DRAFT_WORDS} words"

    def extractive(self) -> str:
        return best_sentences(self.texts(), self.query(), _DRAFT_WORDS) or "Nothing was read."

    def expected(self) -> str:
        pieces = spread_pieces(self.texts(), 64, _DRAFT_WORDS)
        return (pieces[-1] if pieces else "") or "answer " * _DRAFT_WORDS


@dataclass(frozen=True)
class WithoutText(Filled[T], Generic[T]):
    """Base class of prompts that show the question alone."""

    max_reply_tokens = 256
    fills = ((QUESTION, ()), (QUESTION, OPTIONS, DATE))
    question: str
    options: tuple[str, ...]
    asked_at: str = ""  # the date of the question, where it has one


class Hypothetical(WithoutText[str]):
    """Write a passage that could stand in the text and answers the question (HyDE). No text is
    shown. The value is the passage, stripped; a cut one can be searched with, too. Asked by the
    stage `queries` (kind hypothetical)."""

    name = "hypothetical"
    assumed = f"a passage of {_PASSAGE_WORDS} words"

    def extractive(self) -> str:
        said = _ASKING.sub("", self.question, count=1).strip(" \t\n?？")
        return f"{said}: {' or '.join(self.options)}." if self.options else f"{said}."

    def expected(self) -> str:
        return " ".join(islice(cycle(self.extractive().split()), _PASSAGE_WORDS))


class SubQuestions(Lines, WithoutText[tuple[str, ...]]):
    """Which questions to search for instead of this one (RQ-RAG)? No text is shown. The value:
    one a line, per thing asked or per reading. Asked by the stage `queries` (kind sub_questions).
    """

    name = "sub_questions"

    def extractive(self) -> str:
        cut = _BETWEEN.split(self.question, maxsplit=_MOST_PARTS - 1)
        parts = [" ".join(part.split()) for part in cut if any(map(str.isalnum, part))]
        return _numbered(parts if len(parts) > 1 else [" ".join(self.question.split())])

    def expected(self) -> str:
        return _numbered(spread_pieces([self.question, *self.options], _LINES, _LINE_WORDS))
