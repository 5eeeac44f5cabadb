"""Paginate a document: cut it into pages at natural pauses. Knows nothing of questions.

ReadAgent section 3.1 and appendix G; the tail rule follows the authors' notebook, the label rule is
a setting. Words are counted by stages/text/words.py. With `page_breaks` no page crosses a form feed
(the end of a session), and each session is paginated independently of those before it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.ask import Ask
from pipeline.calls import Subject
from pipeline.errors import AccountingError, Problem
from pipeline.prompts import Prompt
from pipeline.rows import IndexRow, Record, UnitRows
from pipeline.stage import Stage
from pipeline.trace_lines import Line, RawText
from stages.index.pieces import Piece, pieces, sections
from stages.index.window import LABEL_RULES, Following, LabelRule, Window, shown_text
from stages.prompts.break_point import BreakPoint, Labelled
from stages.text.paragraphs import Paragraphs
from stages.text.words import num_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(IndexRow):
    """One page. Pages tile the document: joined in order, their texts are its text."""

    table: ClassVar[str] = "pages"
    key: ClassVar[tuple[str, ...]] = ("document_id", "page_index")
    drawn: ClassVar[bool] = True
    views: ClassVar[tuple[str, ...]] = (
        """create view {prefix}fallbacks as
        -- A row per step whose model chooses, and how often its reply named nothing legal.
        -- stage: the stage that asks
        -- what: what was chosen without a reply
        -- asked: how often a model was to choose
        -- fell_back: of that, how often its reply could not be used
        select {run}'paginate' as stage, step_id, memory,
          'of the page ends asked for were chosen by no reply' as what,
          count(*) filter (chosen_by in ('model', 'fallback')) as asked,
          count(*) filter (chosen_by = 'fallback') as fell_back
        from {prefix}pages group by all""",
        # Where gold spans overlap, each counts from where those before it end.
        """create view {prefix}page_evidence as
        -- A row per page and question that has gold evidence.
        -- page_index: of the page
        -- start_char: of the page, in the document's text
        -- end_char: of the page, in the document's text
        -- gold_chars: characters of gold evidence on the page, each counted once
        with spans as (
          select {run}document_id, question_id, unnest(evidence) as span from {prefix}questions),
        gold as (
          select * exclude (span), span.end_char as gold_end, greatest(span.start_char, coalesce(
            max(span.end_char) over (partition by {run}document_id, question_id
              order by span.start_char, span.end_char
              rows between unbounded preceding and 1 preceding), 0)) as gold_start
          from spans)
        select {run}memory, document_id, question_id, page_index, start_char, end_char,
          sum(greatest(0, least(end_char, gold_end) - greatest(start_char, gold_start)))::bigint
            as gold_chars
        from {prefix}pages join gold using ({run}document_id)
        where text is not null group by all""",
    )
    memories: ClassVar[str | None] = """
        -- pages: pages of all documents
        -- words_per_page: the mean, in words
        -- fallback: of the page ends that a model was to choose, the percentage chosen by no reply
        select memory, count(*) as pages, avg(num_words) as words_per_page,
          100 * count(*) filter (chosen_by = 'fallback')
            / nullif(count(*) filter (chosen_by in ('model', 'fallback')), 0) as fallback
        from pages group by memory"""
    sizes: ClassVar[str | None] = """
        select memory, 'pages per document' as measure, 'documents' as rows_of, 30 as place,
          count(*)::double as value
        from pages where text is not null group by memory, document_id
        union all by name
        select memory, 'words per page' as measure, 'pages' as rows_of, 50 as place,
          num_words::double as value
        from pages where text is not null"""
    page_texts: ClassVar[str | None] = """
        select memory, document_id, page_index, 10 as place, 'page' as heading, text, num_words,
          problem
        from pages"""
    page_index: int  # of the document's pages, from 0
    start_char: int  # in the document's text
    end_char: int  # in the document's text
    text: str | None  # of the page; null: the document could not be cut
    num_words: int  # words of the page
    chosen_by: str | None  # what chose its end: model, rule, end (of the text) or fallback
    merged_from: tuple[int, ...] = ()  # page indexes of the memory that this one was made from

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        facts = f"{row['num_words']} words, {row['problem'] or row['chosen_by']}"
        return [RawText(f"<Page {row['page_index']}> ({facts}) ", row["text"] or "-")]

    def lack(self) -> str | None:
        """Only a page without text: where the call for its end failed, the fallback has text."""
        return f"paginate: {self.problem}" if self.text is None else None


class Paginate(Stage):
    """The base of every stage that writes pages."""

    name: ClassVar[str] = "paginate"
    writes: ClassVar[type[Record]] = Page
    starts_memory: ClassVar[bool] = True

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Page]:
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

    kind: ClassVar[str] = "uniform"
    version: ClassVar[int] = 1
    words: PositiveInt
    max_words: PositiveInt

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


class PaginateByModel(_FromText):
    """The model ends each page at one of the labels shown (ReadAgent section 3.1).

    By the label rule `within_limits` a window holds as many whole paragraphs as fit `max_words`; a
    label follows each paragraph where the page would have `min_words` or more, and the window's
    end. By `notebook`, the authors' own, it takes paragraphs until it has `max_words`, and the
    first label stands one paragraph earlier. A remainder under `tail_words` is the last page,
    without a call. The `preceding_words` words before the window (null: the previous page) are
    shown with it, and by `following` nothing, an ellipsis, or the next paragraph and an ellipsis.
    """

    kind: ClassVar[str] = "model"
    version: ClassVar[int] = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    asks_in_turn: ClassVar[bool] = True
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

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order; calls are sequential.

        chosen_by: model, rule (one legal label, no call), end (the tail, no call), fallback (the
        last label, as the reply names no legal one). A fallback by itself is no problem.
        Problems: context_overflow, timeout, engine_failed (fallback pages, which keep their text).
        """
        made: list[Page] = []
        for parts in self.parts(rows.document.text, self.max_words):
            await self._section(rows, parts, made, ask)
        return made

    async def _section(
        self, rows: UnitRows, parts: Sequence[Piece], made: list[Page], ask: Ask
    ) -> None:
        """Append the pages of one section to `made`."""
        totals, ends = word_totals(parts), [part.end_char for part in parts]
        previous = first = 0
        while first < len(parts):
            labels = LABEL_RULES[self.label_rule](totals, first, self.min_words, self.max_words)
            if totals[-1] - totals[first] < min(self.tail_words, self.max_words + 1):
                page = _page(rows, len(made), parts[first:], "end")
            elif len(labels) == 1:
                page = _page(rows, len(made), parts[first : labels[0]], "rule")
            else:
                window = Window(parts, first, labels, previous)
                page = await self._chosen(rows, window, len(made), ask)
            made.append(page)
            about = len(made) * len(rows.document.text) / page.end_char  # pages as long as so far
            ask.progress.tell(max(round(about), len(made)), len(made))
            previous, first = first, bisect_left(ends, page.end_char) + 1

    async def _chosen(self, rows: UnitRows, window: Window, page_index: int, ask: Ask) -> Page:
        """The page up to the label that the model chooses, or to the last label as a fallback.

        A fallback has a problem only where there was no reply.
        """
        prompt = self._prompt(rows.document.text, window)
        asked = await ask(prompt, Subject(page_index=page_index))
        is_legal = asked.value in window.labels
        end = asked.value if asked.value is not None and is_legal else window.labels[-1]
        chosen_by = "model" if is_legal else "fallback"
        page = _page(rows, page_index, window.parts[window.first : end], chosen_by)
        return page if asked.has_reply else replace(page, problem=asked.problem)

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
    return Page(
        document_id=rows.document.document_id,
        page_index=page_index,
        start_char=start,
        end_char=end,
        text=rows.document.text[start:end],
        num_words=num_words(rows.document.text[start:end]),
        chosen_by=chosen_by,
    )
