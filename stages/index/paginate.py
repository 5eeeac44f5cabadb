"""Paginate a document: cut it into pages at natural pauses. Knows nothing of questions.

ReadAgent section 3.1 and appendix G; the tail rule follows the authors' notebook, the label rule is
a setting. Words are counted by stages/text/words.py. With `page_breaks` no page crosses a form feed
(the end of a session), and each session is paginated independently of those before it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.page_pieces import Piece
from stages.index.windows import ByWindows, FromText, InConversations, Windows, word_totals
from stages.prompts.readagent.break_point import BreakPoint
from stages.prompts.readagent.break_point_follow_up import NextBreakPoint
from stages.tables.pages import Page
from stages.text.words import num_words


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


class PaginateUniform(FromText, Paginate):
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


def nearest_end(totals: Sequence[int], first: int, words: int) -> int:
    """The end (half-open) of the page from piece `first` nearest to `words` words, ties earlier."""
    target = totals[first] + words
    after = min(max(bisect_left(totals, target), first + 1), len(totals) - 1)
    before = max(after - 1, first + 1)
    return min((before, after), key=lambda end: (abs(totals[end] - target), end))


class PaginateByModel(ByWindows, Paginate):
    """The model ends each page at one of the labels shown (ReadAgent section 3.1).

    A remainder under `tail_words` is the last page, without a call.
    """

    kind = "model"
    version = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    asks_in_turn = True
    tail_words: NonNegativeInt

    def page_size(self) -> tuple[str, int]:
        return "min_words", self.min_words

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, each handed on once it is chosen; calls are sequential.

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
        windows = self.windows(rows.document.text, parts)
        while (first := windows.first) < len(parts):
            labels = windows.labels()
            if windows.words_left < min(self.tail_words, self.max_words + 1):
                page = _page(rows, len(made), parts[first:], "end")
            elif len(labels) == 1:
                page = _page(rows, len(made), parts[first : labels[0]], "rule")
            else:
                page = await self._chosen(rows, windows, len(made), ask)
            windows.ended(page.end_char)
            made.append(page)
            rows.hand_on(page)
            about = len(made) * len(rows.document.text) / page.end_char  # pages as long as so far
            ask.progress.tell(max(round(about), len(made)), len(made))

    async def _chosen(self, rows: UnitRows, windows: Windows, page_index: int, ask: Ask) -> Page:
        """The page up to the label that the model chooses, or to the last label as a fallback.

        A fallback has a problem only where there was no reply.
        """
        prompt, labels = await windows.ask_with(ask), windows.labels()
        asked = await ask(prompt, Subject(page_index=page_index))
        if not asked.has_reply:
            windows.asked = None  # nothing follows a question without a reply
        is_legal = asked.value in labels
        end = asked.value if asked.value is not None and is_legal else labels[-1]
        chosen_by = "model" if is_legal else "fallback"
        page = _page(rows, page_index, windows.parts[windows.first : end], chosen_by)
        return page if asked.has_reply else replace(page, problem=asked.problem)


class PaginateInConversations(InConversations, PaginateByModel):
    """As PaginateByModel, with several windows in a conversation, which shows what they share once.
    Equal replies give equal pages."""

    kind = "conversation"
    version = 1
    prompts = (BreakPoint, NextBreakPoint)


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
