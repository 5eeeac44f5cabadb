"""Paginate a document: cut it into pages at natural pauses. Knows nothing of questions.

ReadAgent section 3.1 and appendix G; the tail rule follows the authors' notebook, the label rule is
a setting. Words are counted by stages/text/words.py. With `page_breaks` no page crosses a form feed
(the end of a session), and each session is paginated independently of those before it.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Asked
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.page_pieces import (
    LABEL_RULES,
    Following,
    LabelRule,
    Piece,
    Window,
    pieces,
    sections,
    shown_text,
)
from stages.index.read_ahead import ReadAhead
from stages.prompts.readagent.break_point import BreakPoint, Labelled
from stages.tables.pages import Page
from stages.text.words import Paragraphs, num_words


class Paginate(Stage):
    """The base of every stage that writes pages."""

    name = "paginate"
    writes = Page
    starts_memory = True

    def row_per(self) -> str:
        return "document_id"  # also where pages are read

    def page_size(self) -> tuple[str, int] | None:
        """The setting that says how many words or tokens most of its pages have at least, and their
        number; None where none does."""
        return None

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless the pages, joined, are the document's text."""
        texts = [page.text or "" for page in made if isinstance(page, Page)]
        if "".join(texts) != rows.document.text:
            raise AccountingError(f"{rows.document.document_id}: pages do not tile the text")


class _FromText(Paginate):
    """Base class. `page_breaks`: form feeds separate sections, and pages stay within one."""

    paragraphs: Paragraphs
    page_breaks: bool

    def parts(self, text: str, max_words: int) -> Iterator[list[Piece]]:
        """The pieces of each section, none over `max_words` words but a single longer word."""
        for start, end in sections(text) if self.page_breaks else [(0, len(text))]:
            if found := pieces(text, start, end, self.paragraphs, max_words):
                yield found


class PaginateUniform(_FromText):
    """Pages of about `words` words: each ends at the nearest paragraph end, ties earlier.

    ReadAgent appendix A, the uniform-length baseline. Only a paragraph longer than both `words` and
    `max_words` is cut, at sentence ends.
    """

    kind = "uniform"
    version = 1
    words: PositiveInt
    max_words: PositiveInt

    def page_size(self) -> tuple[str, int]:
        return "words", self.words

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        longest = max(self.words, self.max_words)
        made: list[Page] = []
        for parts in self.parts(rows.document.text, longest):
            totals = word_totals(parts)
            first = 0
            while first < len(parts):
                last = nearest_end(totals, first, self.words)
                made.append(_page(rows, len(made), parts[first:last], "rule"))
                first = last
        return made


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """Cumulative words: those before each piece, then those of all pieces."""
    return [0, *accumulate(part.num_words for part in parts)]


def nearest_end(totals: Sequence[int], first: int, words: int) -> int:
    """The end (half-open) of the page from piece `first` nearest to `words` words, ties earlier."""
    target = totals[first] + words
    after = min(max(bisect_left(totals, target), first + 1), len(totals) - 1)
    before = max(after - 1, first + 1)
    return min((before, after), key=lambda end: (abs(totals[end] - target), end))


class _Choice(NamedTuple):
    """Where a page ends (half-open, in pieces), and what chose it."""

    end: int
    chosen_by: str
    problem: Problem | None = None


class PaginateByModel(_FromText):
    """The model ends each page at one of the labels shown (ReadAgent section 3.1).

    By the label rule `within_limits` a window holds as many whole paragraphs as fit `max_words`; a
    label follows each paragraph where the page would have `min_words` or more, and the window's
    end. By `notebook`, the authors' own, it takes paragraphs until it has `max_words`, and the
    first label stands one paragraph earlier. A remainder under `tail_words` is the last page,
    without a call. The `preceding_words` words before the window (None: the previous page) are
    shown with it, and by `following` nothing, an ellipsis, or the next paragraph and an ellipsis.
    """

    kind = "model"
    version = 1
    prompts = (BreakPoint,)
    asks_in_turn = True
    min_words: PositiveInt
    max_words: PositiveInt
    tail_words: NonNegativeInt
    preceding_words: NonNegativeInt | None
    following: Following
    label_rule: LabelRule

    @model_validator(mode="before")  # so that it also checks a family's partial settings
    @classmethod
    def _in_order(cls, values: dict[str, Any]) -> dict[str, Any]:
        least, most = values.get("min_words"), values.get("max_words")
        if isinstance(least, int) and isinstance(most, int) and least > most:
            raise ValueError(f"min_words {least} is over max_words {most}; lower it")
        return values

    def page_size(self) -> tuple[str, int]:
        return "min_words", self.min_words

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, each handed on once it is chosen. Calls are sequential, but
        that an idle engine also chooses from guessed starts further on: see `ReadAhead`.

        chosen_by: model, rule (one legal label, no call), end (the tail, no call), fallback (the
        last label, as the reply names no legal one). A fallback by itself is no problem.
        Problems: context_overflow, timeout, refused, engine_failed (fallback pages, which keep
        their text).
        """
        made: list[Page] = []
        for parts in self.parts(rows.document.text, self.max_words):
            await self._section(rows, parts, made, ask)
        return made

    async def _section(
        self, rows: UnitRows, parts: Sequence[Piece], made: list[Page], ask: Ask
    ) -> None:
        """Append the pages of one section to `made`."""
        text, totals, num_before = rows.document.text, word_totals(parts), len(made)

        async def choose_ahead(start: int) -> int:
            window = self._window(parts, totals, start, start)
            return (await self._choice(text, window, ask.ahead)).end

        ahead = ReadAhead(choose_ahead, totals, lambda: self._may_read_ahead(ask))
        previous = first = 0
        try:
            while first < len(parts):
                ahead.reached(first, len(made) - num_before)
                window = self._window(parts, totals, first, previous)
                send = partial(ask, subject=Subject(page_index=len(made)))
                choice = await self._choice(text, window, send)
                page = _page(rows, len(made), parts[first : choice.end], choice.chosen_by)
                made.append(replace(page, problem=choice.problem))
                rows.hand_on(made[-1])
                about = len(made) * len(text) / page.end_char  # pages as long as so far
                ask.progress.tell(max(round(about), len(made)), len(made))
                previous, first = first, choice.end
        finally:
            await ahead.stop()

    def _may_read_ahead(self, ask: Ask) -> bool:
        """True if a page's end does not depend on where the page before it begins, and the engine
        idles."""
        return self.preceding_words is not None and ask.may_read_ahead

    def _window(
        self, parts: Sequence[Piece], totals: Sequence[int], first: int, previous: int
    ) -> Window:
        """The window of the page from piece `first`; its only label is the end where the rest is a
        tail."""
        if totals[-1] - totals[first] < min(self.tail_words, self.max_words + 1):
            return Window(parts, first, [len(parts)], previous, is_tail=True)
        labels = LABEL_RULES[self.label_rule](totals, first, self.min_words, self.max_words)
        return Window(parts, first, labels, previous)

    async def _choice(
        self, text: str, window: Window, send: Callable[[BreakPoint], Awaitable[Asked[int]]]
    ) -> _Choice:
        """The label that the model chooses, or the last label as a fallback; without a call if
        there is only one.

        A fallback has a problem only where there was no reply.
        """
        if len(window.labels) == 1:
            return _Choice(window.labels[0], "end" if window.is_tail else "rule")
        asked = await send(self._prompt(text, window))
        problem = None if asked.has_reply else asked.problem
        if asked.value is not None and asked.value in window.labels:
            return _Choice(asked.value, "model", problem)
        return _Choice(window.labels[-1], "fallback", problem)

    def _prompt(self, text: str, window: Window) -> BreakPoint:
        parts, first, labels = window.parts, window.first, window.labels
        shown = tuple(
            Labelled(shown_text(text, part.start_char, part.end_char), i if i in labels else None)
            for i, part in enumerate(parts[first : labels[-1]], start=first + 1)
        )
        return BreakPoint(
            preceding=window.before(text, self.preceding_words),
            paragraphs=shown,
            following=window.after(text, self.following),
        )


def _page(rows: UnitRows, page_index: int, parts: Sequence[Piece], chosen_by: str) -> Page:
    return page_of(rows, page_index, (parts[0].start_char, parts[-1].end_char), chosen_by)


def page_of(rows: UnitRows, page_index: int, span: tuple[int, int], chosen_by: str) -> Page:
    """The page of these characters of the document's text."""
    start, end = span
    return Page.about(
        rows.document,
        page_index=page_index,
        start_char=start,
        end_char=end,
        text=rows.document.text[start:end],
        num_words=num_words(rows.document.text[start:end]),
        chosen_by=chosen_by,
    )
