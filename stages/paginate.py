"""Cut a document into pages where it is natural to pause. Knows nothing of questions.

ReadAgent section 3.1 and appendix G; the tail rule and the label rule follow the authors' notebook.
Words are whitespace-separated.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from pipeline.ask import Ask, Subject
from pipeline.errors import AccountingError, Problem
from pipeline.records import Page, Record
from pipeline.stage import DocumentRows, Stage
from stages import constraints
from stages.fields import BreakPoint, Labelled
from stages.paragraphs import Paragraphs, paragraph_spans, sentence_spans
from stages.parsing import parse_break_point

# A paragraph too long for a window is cut into pieces of this share of it, so that a text
# without paragraphs still leaves the model a choice of labels.
_PIECES_PER_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, or a run of sentences of one that is too long."""

    start_char: int
    end_char: int
    num_words: int


def pieces(text: str, paragraphs: Paragraphs, max_words: int) -> list[Piece]:
    """What pages are made of, tiling `text`: no piece but a lone sentence exceeds `max_words`."""
    found: list[Piece] = []
    for start, end in paragraph_spans(text, paragraphs):
        num_words = len(text[start:end].split())
        if num_words <= max_words:
            found.append(Piece(start, end, num_words))
        else:
            found += _sentence_runs(text, start, end, max(1, max_words // _PIECES_PER_WINDOW))
    return found


def _sentence_runs(text: str, start: int, end: int, most: int) -> list[Piece]:
    runs: list[Piece] = []
    for first, last in sentence_spans(text[start:end]):
        num_words = len(text[start + first : start + last].split())
        # White space before the first sentence joins it: a page without a word has no gist.
        if runs and (not runs[-1].num_words or runs[-1].num_words + num_words <= most):
            run = runs[-1]
            runs[-1] = Piece(run.start_char, start + last, run.num_words + num_words)
        else:
            runs.append(Piece(start + first, start + last, num_words))
    return runs


class _Paginate(Stage):
    name: ClassVar[str] = "paginate"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[type[Record]] = Page
    paragraphs: Paragraphs

    def failed(self, rows: DocumentRows, problem: Problem, detail: str | None) -> list[Page]:
        page = Page(
            document_id=rows.document.document_id,
            page_index=0,
            start_char=0,
            end_char=0,
            text=None,
            num_words=0,
            chosen_by=None,
            problem=problem,
            detail=detail,
        )
        return [page]

    def check(self, rows: DocumentRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless the pages, joined, are the document's text."""
        texts = [page.text or "" for page in made if isinstance(page, Page)]
        if "".join(texts) != rows.document.text:
            raise AccountingError(f"{rows.document.document_id}: pages do not tile the text")


class PaginateUniform(_Paginate):
    """Pages of about `words` words: each ends at the paragraph nearest to that, ties earlier.

    ReadAgent appendix A, the uniform-length baseline. All pages are chosen by rule. Only a
    paragraph longer than `max_words` (and than a page) is cut, at sentence ends.
    """

    by: Literal["uniform"] = "uniform"
    words: int
    max_words: int

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order. No calls."""
        longest = max(self.words, self.max_words)
        parts = pieces(rows.document.text, self.paragraphs, longest)
        totals = word_totals(parts)
        made: list[Page] = []
        first = 0
        while first < len(parts):
            last = nearest_end(totals, first, self.words)
            made.append(_page(rows, len(made), parts[first:last], "rule"))
            first = last
        return made


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """How many words stand before each piece, and at the end all of them."""
    return [0, *accumulate(part.num_words for part in parts)]


def nearest_end(totals: Sequence[int], first: int, words: int) -> int:
    """The end (half-open) of the page from piece `first` nearest to `words` words, ties earlier."""
    target = totals[first] + words
    after = min(max(bisect_left(totals, target), first + 1), len(totals) - 1)
    before = max(after - 1, first + 1)
    return min((before, after), key=lambda end: (abs(totals[end] - target), end))


@dataclass(frozen=True, slots=True)
class Window:
    """What one call sees: the pieces from `first` up to the last of the legal ends, `labels`."""

    parts: Sequence[Piece]
    first: int
    labels: Sequence[int]


class PaginateByModel(_Paginate):
    """The model chooses among labels where to end each page.

    A window takes whole paragraphs while it stays within `max_words`; labels stand after the
    paragraphs where the page would have `min_words` or more, and at the window's end. A rest of
    fewer than `tail_words` is the last page without a call. `preceding_words` of the text before
    the window are shown with it. A choice depends on the window's start alone.
    """

    by: Literal["model"] = "model"
    prompts: ClassVar[tuple[str, ...]] = ("break_point",)
    min_words: int
    max_words: int
    tail_words: int
    preceding_words: int
    max_reply_tokens: int

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(
                f"min_words {self.min_words} is over max_words {self.max_words}; lower it"
            )
        return self

    async def run(self, rows: DocumentRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, one call after another.

        chosen_by: model, rule (one legal label, no call), end (the tail, no call), fallback (no
        reply that names a legal label: the last label). A fallback by itself is no problem.
        Problems, the page's text kept: context_overflow, timeout, engine_failed.
        """
        parts = pieces(rows.document.text, self.paragraphs, self.max_words)
        totals, ends = word_totals(parts), [part.end_char for part in parts]
        made: list[Page] = []
        first = 0
        while first < len(parts):
            labels = legal_ends(totals, first, self.min_words, self.max_words)
            if totals[-1] - totals[first] < min(self.tail_words, self.max_words + 1):
                page = _page(rows, len(made), parts[first:], "end")
            elif len(labels) == 1:
                page = _page(rows, len(made), parts[first : labels[0]], "rule")
            else:
                page = await self._chosen(rows, Window(parts, first, labels), len(made), ask)
            made.append(page)
            first = bisect_left(ends, page.end_char) + 1
        return made

    async def _chosen(self, rows: DocumentRows, window: Window, page_index: int, ask: Ask) -> Page:
        """The page that the model ends, or the last label where it names no legal one.

        A cut explanation does no harm. A reply that never came is a fallback with its problem.
        """
        fields = self._fields(rows.document.text, window)
        subject = Subject(page_index=page_index)
        legal = constraints.break_point(ask.form(fields.prompt), window.labels)
        reply = await ask(fields, self.max_reply_tokens, subject, legal)
        named = parse_break_point(reply.text)
        end = named if named in window.labels else window.labels[-1]
        chosen_by = "model" if named in window.labels else "fallback"
        page = _page(rows, page_index, window.parts[window.first : end], chosen_by)
        came = reply.problem in (None, "truncated")
        return page if came else replace(page, problem=reply.problem)

    def _fields(self, text: str, window: Window) -> BreakPoint:
        parts, first, labels = window.parts, window.first, window.labels
        shown = tuple(
            Labelled(text[part.start_char : part.end_char].strip(), i if i in labels else None)
            for i, part in enumerate(parts[first : labels[-1]], start=first + 1)
        )
        return BreakPoint(preceding=self._before(text, parts, first), paragraphs=shown)

    def _before(self, text: str, parts: Sequence[Piece], first: int) -> str:
        """The last `preceding_words` words before piece `first`, looking no further back."""
        start, num_words = first, 0
        while start > 0 and num_words < self.preceding_words:
            start -= 1
            num_words += parts[start].num_words
        words = text[parts[start].start_char : parts[first].start_char].split()
        return " ".join(words[-self.preceding_words :]) if self.preceding_words else ""


def legal_ends(totals: Sequence[int], first: int, min_words: int, max_words: int) -> list[int]:
    """Where the page from piece `first` may end (half-open); a label's number is its end.

    Label 7 stands after the document's seventh piece. The window's own end is always legal.
    """
    window = max(bisect_right(totals, totals[first] + max_words) - 1, first + 1)
    least = bisect_left(totals, totals[first] + min_words, lo=first + 1)
    return [*range(least, window), window]


def _page(rows: DocumentRows, page_index: int, parts: Sequence[Piece], chosen_by: str) -> Page:
    start, end = parts[0].start_char, parts[-1].end_char
    return Page(
        document_id=rows.document.document_id,
        page_index=page_index,
        start_char=start,
        end_char=end,
        text=rows.document.text[start:end],
        num_words=sum(part.num_words for part in parts),
        chosen_by=chosen_by,
    )
