"""Cut a document into pages at natural pauses; no questions.

ReadAgent section 3.1 and appendix G; the tail rule follows the authors' notebook, the label rule is
a setting. With `page_breaks` each session, which ends at a form feed, is paginated by itself. Other
kinds cut into segments of a fixed number of tokens (MemWalker section 3), or a chat history into
its sessions or rounds (LongMemEval section 5.2, the granularity of values).
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.windows import (
    SHORTEST_PAGES,
    ByWindows,
    Conversation,
    FromText,
    InConversations,
    sections,
    word_totals,
)
from stages.prompts.memwalker import SummarizeSegment
from stages.prompts.readagent_memory import BreakPoint, NextBreakPoint
from stages.tables.pages import Page
from stages.text.fit_to_limit import fit_to_limit, stretch_over
from stages.text.words import num_words, sentence_spans, without_header, word_spans


class Paginate(Stage):
    """Base class of every stage that writes pages."""

    name = "paginate"
    writes = Page
    starts_memory = True
    # The setting that bounds most pages from below, in words or tokens.
    size_setting: ClassVar[str | None] = None

    def row_per(self) -> str:
        return "document_id"  # also where pages are read

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless the pages, joined, are the document's text."""
        texts = [page.text or "" for page in made if isinstance(page, Page)]
        if "".join(texts) != rows.document.text:
            raise AccountingError(f"{rows.document.document_id}: pages do not tile the text")


def page_of(rows: UnitRows, page_index: int, span: tuple[int, int], chosen_by: str) -> Page:
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


class PaginateUniform(FromText, Paginate):
    """Pages of about `words` words: each ends at the nearest paragraph end, ties earlier.

    ReadAgent appendix A, the uniform-length baseline. Only a paragraph longer than both `words` and
    `max_words` is cut, at sentence ends.
    """

    kind = "uniform"
    version = 1
    size_setting = "words"
    words: PositiveInt
    max_words: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        pages: list[Page] = []
        for parts in self.parts(rows.document.text, max(self.words, self.max_words)):
            totals = word_totals(parts)
            first = 0
            while first < len(parts):
                target = totals[first] + self.words
                after = min(max(bisect_left(totals, target), first + 1), len(parts))
                before = max(after - 1, first + 1)
                end = min(before, after, key=lambda end: abs(totals[end] - target))
                rest = totals[-1] - totals[end]
                if self.page_ends == "pauses" and rest < self.words / SHORTEST_PAGES:
                    end = len(parts)
                span = parts[first].start_char, parts[end - 1].end_char
                pages.append(page_of(rows, len(pages), span, "rule"))
                first = end
        return pages


class PaginateByModel(ByWindows, Paginate):
    """The model ends each page at one of the labels shown (ReadAgent section 3.1).

    A remainder under `tail_words` is the last page, without a call.
    """

    kind = "model"
    version = 1
    prompts: ClassVar[tuple[type[Prompt[Any]], ...]] = (BreakPoint,)
    asks_in_turn = True
    size_setting = "min_words"
    tail_words: NonNegativeInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order. Calls are sequential.

        chosen_by: model, rule (one legal label, no call), end (the tail, no call), fallback (the
        last label, as the reply names no legal one). A fallback by itself is no problem.
        Problems: context_overflow, timeout, refused, engine_failed (fallback pages, which keep
        their text).
        """
        text = rows.document.text
        pages: list[Page] = []
        for parts in self.parts(text, self.max_words):
            conversation = Conversation(self, text, parts)
            while (first := conversation.first) < len(parts):
                labels, chosen_by, problem = conversation.labels(), "rule", None
                left = conversation.totals[-1] - conversation.totals[first]
                if left < min(self.tail_words, self.max_words + 1):
                    labels, chosen_by = [len(parts)], "end"
                end = labels[-1]
                if len(labels) > 1:
                    prompt = await conversation.prompt(labels, ask)
                    reply = await ask(prompt, Subject(page_index=len(pages)))
                    problem = None if reply.has_reply else reply.problem
                    chosen_by = "fallback"
                    if reply.value is not None and reply.value in labels:
                        end, chosen_by = reply.value, "model"
                span = parts[first].start_char, parts[end - 1].end_char
                page = replace(page_of(rows, len(pages), span, chosen_by), problem=problem)
                pages.append(page)
                conversation.ended(labels, end, is_asked(page))
                expected = round(len(pages) * len(text) / page.end_char)
                ask.progress.tell(expected, len(pages))
        return pages


def is_asked(page: Page) -> bool:
    """True if a model was asked for the page's end and replied."""
    return page.chosen_by in ("model", "fallback") and page.problem is None


class PaginateInConversations(InConversations, PaginateByModel):
    """As PaginateByModel, with several windows in a conversation, which shows what they share once.
    Equal replies give equal pages.
    """

    kind = "conversation"
    version = 1
    prompts = (BreakPoint, NextBreakPoint)


class PaginateByTokens(Paginate):
    """Segments of at most `segment_tokens` of the engine's tokens, cut by `segments`; with
    `page_breaks` none crosses a form feed. The engine only counts.
    """

    kind = "tokens"
    version = 1
    prompts = (SummarizeSegment,)
    size_setting = "segment_tokens"
    page_breaks: bool
    segment_tokens: PositiveInt

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        pages: list[Page] = []
        for first, last in sections(text) if self.page_breaks else [(0, len(text))]:
            part = text[first:last]
            for start, end in await segments(part, self.segment_tokens, ask.text_tokens):
                pages.append(page_of(rows, len(pages), (first + start, first + end), "rule"))
        return pages


Count = Callable[[str], Awaitable[int]]  # the tokens of a text by itself


async def segments(text: str, max_tokens: int, count: Count) -> list[tuple[int, int]]:
    """Half-open spans that tile `text`, in order, of at most `max_tokens` tokens each.

    Each takes as many whole sentences as fit, not counting surrounding white space. A longer
    sentence is cut between words, a longer word between characters; only a single character may
    exceed the limit. No segment is without words, unless the text is.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        spans.append((start, await _segment_end(text, start, max_tokens, count)))
        start = spans[-1][1]
    return spans


async def first_segment(text: str, max_tokens: int, count: Count) -> str:
    """The text, or as many of its first sentences as fit `max_tokens`."""
    _, end = (await segments(text, max_tokens, count))[0]
    return text[:end].strip()


async def _segment_end(text: str, start: int, max_tokens: int, count: Count) -> int:
    async def size(num_chars: int) -> int:
        return await count(text[start : start + num_chars].strip())

    num_chars, tokens = await stretch_over(max_tokens, size, len(text) - start)
    if tokens <= max_tokens:
        return len(text)
    for unit in ("sentences", "words", "characters"):
        stretch = text[start : start + num_chars]
        ends: Sequence[int] = range(1, len(stretch) + 1)
        if unit == "sentences":
            ends = _sentence_ends(stretch)
        elif unit == "words":  # each ends where the next one starts
            ends = [*(first for first, _ in word_spans(stretch)[1:]), len(stretch)]
        blank = len(stretch) - len(stretch.lstrip())  # what has no word is no segment
        lengths = [0, *(end for end in ends if end > blank)]
        most = await fit_to_limit(max_tokens, size, lengths, 0, tokens)
        if most:
            return start + most
        num_chars = lengths[1]  # too long by itself: cut it at ends of a finer kind
        tokens = await size(num_chars)
    return start + num_chars


def _sentence_ends(text: str) -> list[int]:
    """The ends of the sentences, and of the text; a session's header joins the next sentence."""
    ends: list[int] = []
    for first, last in sections(text):
        for start, end in sentence_spans(text[first:last]):
            if first + end < len(text) and num_words(text[first + start : first + end]):
                ends.append(first + end)
    return [*ends, len(text)]


# A turn is a paragraph: a line within one may begin so, too, where a dialogue was pasted.
_USER_TURN = re.compile(r"(?:\A\f?|(?<=\n\n))user: ")


class PaginateChat(Paginate):
    """A page is a session, or with `value: round` a turn of the user and those after it, up to the
    user's next. What stands before a session's first turn of the user belongs to its first round; a
    document without sessions is one.
    """

    kind = "chat"
    version = 1
    value: Literal["session", "round"]

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        spans: list[tuple[int, int]] = []
        for start, end in sections(text):
            cuts: list[int] = []
            if self.value == "round":
                turns = without_header(text[start:end])
                cuts = [end - len(turns) + turn.start() for turn in _USER_TURN.finditer(turns)]
            spans += pairwise([start, *cuts[1:], end])
        return [page_of(rows, index, span, "rule") for index, span in enumerate(spans)]
