"""Cut a document into pages at natural pauses; no questions.

ReadAgent section 3.1 and appendix G; the tail rule follows the authors' notebook, the label rule is
a setting. stages/text/words.py counts words. With `page_breaks` no page crosses a form feed (the
end of a session), and each session is paginated independently of those before it.

Other kinds cut into segments of a fixed number of tokens (MemWalker section 3), or a chat history
into its sessions or rounds (LongMemEval section 5.2, the granularity of values).
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import NonNegativeInt, PositiveInt

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError, Problem
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.windows import (
    SHORTEST_PAGES,
    ByWindows,
    Conversation,
    FromText,
    InConversations,
    Piece,
    Window,
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

    def row_per(self) -> str:
        return "document_id"  # also where pages are read

    def page_size(self) -> tuple[str, int] | None:
        """The setting that bounds most pages from below (words or tokens), and its value, or
        None."""
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
                rest = totals[-1] - totals[last]
                if self.page_ends == "pauses" and rest < self.words / SHORTEST_PAGES:
                    last = len(parts)
                made.append(_page(rows, len(made), parts[first:last], "rule"))
                first = last
        return made


def nearest_end(totals: Sequence[int], first: int, words: int) -> int:
    """The end (half-open) of the page from piece `first` nearest to `words` words; ties earlier."""
    target = totals[first] + words
    after = min(max(bisect_left(totals, target), first + 1), len(totals) - 1)
    before = max(after - 1, first + 1)
    return min((before, after), key=lambda end: (abs(totals[end] - target), end))


class _Choice(NamedTuple):
    """The end of a page (half-open, in pieces), and `chosen_by`."""

    end: int
    chosen_by: str
    problem: Problem | None = None


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
        """Document -> Pages, in order. Calls are sequential.

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
        text, totals = rows.document.text, word_totals(parts)
        conversation = self.conversation(text)
        previous = first = 0
        while first < len(parts):
            window = self._window(parts, totals, first, previous)
            choice = await self._choice(window, conversation, Subject(page_index=len(made)), ask)
            page = _page(rows, len(made), parts[first : choice.end], choice.chosen_by)
            made.append(replace(page, problem=choice.problem))
            conversation.ended(window, choice.end, is_asked(made[-1]))
            about = len(made) * len(text) / page.end_char  # pages as long as so far
            ask.progress.tell(max(round(about), len(made)), len(made))
            previous, first = first, choice.end

    def _window(
        self, parts: Sequence[Piece], totals: Sequence[int], first: int, previous: int
    ) -> Window:
        """The window of the page from piece `first`; if the rest is a tail, its only label is the
        end."""
        if totals[-1] - totals[first] < min(self.tail_words, self.max_words + 1):
            return Window(parts, first, [len(parts)], previous, is_tail=True)
        return self.window(parts, totals, first, previous)

    async def _choice(
        self, window: Window, conversation: Conversation, subject: Subject, ask: Ask
    ) -> _Choice:
        """The label that the model chooses, or the last one as a fallback. Makes no call if there
        is only one. A fallback has a problem only if there was no reply."""
        if len(window.labels) == 1:
            return _Choice(window.labels[0], "end" if window.is_tail else "rule")
        asked = await ask(await conversation.prompt(window, ask), subject)
        problem = None if asked.has_reply else asked.problem
        if asked.value is not None and asked.value in window.labels:
            return _Choice(asked.value, "model", problem)
        return _Choice(window.labels[-1], "fallback", problem)


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


def _page(rows: UnitRows, page_index: int, parts: Sequence[Piece], chosen_by: str) -> Page:
    return page_of(rows, page_index, (parts[0].start_char, parts[-1].end_char), chosen_by)


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


class PaginateByTokens(Paginate):
    """Segments of at most `segment_tokens` of the engine's tokens, cut by `segments`; with
    `page_breaks` none crosses a form feed. The engine only counts.
    """

    kind = "tokens"
    version = 1
    prompts = (SummarizeSegment,)
    page_breaks: bool
    segment_tokens: PositiveInt

    def page_size(self) -> tuple[str, int]:
        return "segment_tokens", self.segment_tokens

    async def run(self, rows: UnitRows, ask: Ask) -> list[Page]:
        """Document -> Pages, in order, with chosen_by `rule`. No calls."""
        text = rows.document.text
        made: list[Page] = []
        for first, last in sections(text) if self.page_breaks else [(0, len(text))]:
            for start, end in await segments(
                text[first:last], self.segment_tokens, ask.text_tokens
            ):
                made.append(page_of(rows, len(made), (first + start, first + end), "rule"))
        return made


Count = Callable[[str], Awaitable[int]]
"""The tokens of a text by itself, as an engine counts them."""


async def segments(text: str, max_tokens: int, count: Count) -> list[tuple[int, int]]:
    """Half-open spans that tile `text`, in order, of at most `max_tokens` tokens each.

    Each takes as many whole sentences as fit, not counting surrounding white space. A longer
    sentence is cut between words, a longer word between characters; only a single character may
    exceed the limit. No segment is without words, unless the text is.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = await _end(text, start, max_tokens, count)
        found.append((start, end))
        start = end
    return found


async def first_segment(text: str, max_tokens: int, count: Count) -> str:
    """The text, or as many of its first sentences as fit `max_tokens`."""
    _, end = (await segments(text, max_tokens, count))[0]
    return text[:end].strip()


async def _end(text: str, start: int, max_tokens: int, count: Count) -> int:
    async def size(num_chars: int) -> int:
        return await count(text[start : start + num_chars].strip())

    num_chars, tokens = await stretch_over(max_tokens, size, len(text) - start)
    if tokens <= max_tokens:
        return len(text)
    for ends in (_sentence_ends, _word_ends, _char_ends):
        stretch = text[start : start + num_chars]
        blank = len(stretch) - len(stretch.lstrip())  # what has no word is no segment
        lengths = [0, *(end for end in ends(stretch) if end > blank)]
        most = await fit_to_limit(max_tokens, size, lengths, 0, tokens)
        if most:
            return start + most
        num_chars = lengths[1]  # too long by itself: cut it at ends of a finer kind
        tokens = await size(num_chars)
    return start + num_chars


def _sentence_ends(text: str) -> list[int]:
    """The ends of the sentences, and of the text; a session's header joins the next sentence."""
    spans = [
        (first + start, first + end)
        for first, last in sections(text)
        for start, end in sentence_spans(text[first:last])
    ]
    ends = [end for start, end in spans if end < len(text) and num_words(text[start:end])]
    return [*ends, len(text)]


def _word_ends(text: str) -> list[int]:
    """The starts of all words but the first, and the end of the text."""
    return [*(start for start, _ in word_spans(text)[1:]), len(text)]


def _char_ends(text: str) -> list[int]:
    return list(range(1, len(text) + 1))


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
        spans = [span for part in sections(text) for span in self._values(text, *part)]
        return [page_of(rows, index, span, "rule") for index, span in enumerate(spans)]

    def _values(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        turns_text = without_header(text[start:end])
        first = end - len(turns_text)
        turns = [first + found.start() for found in _USER_TURN.finditer(turns_text)]
        cuts = turns[1:] if self.value == "round" else []
        yield from pairwise([start, *cuts, end])
