"""Cut a document into pages at natural pauses; no questions.

ReadAgent section 3.1 and appendix G. The windows, their labels and the last page follow the
authors' notebook (read-agent.github.io, cell "Episode Pagination"), where settings choose them.
With `page_breaks` each session, which ends at a form feed, is paginated by itself. Other kinds cut
into segments of a fixed number of tokens (MemWalker section 3), or a chat history into its sessions
or rounds (LongMemEval section 5.2, the granularity of values).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.errors import AccountingError
from pipeline.core.prompts import Prompt
from pipeline.core.rows import Record, UnitRows
from pipeline.work.stage import CAME_LATER, Stage
from stages.prompts.memwalker import SummarizeSegment
from stages.prompts.readagent_memory import BreakPoint, Labeled, NextBreakPoint, PageEnd
from stages.tables.pages import Page
from stages.text.fit_to_limit import segments
from stages.text.words import (
    Paragraphs,
    ends_at_pauses,
    is_without_spaces,
    num_words,
    paragraph_spans,
    sections,
    sentence_spans,
    without_header,
    word_spans,
)

PageEnds = Literal["any", "pauses"]
LabelRule = Literal["within_limits", "notebook"]
Following = Literal["nothing", "ellipsis", "paragraph"]
_PIECES_PER_WINDOW = 6  # of a paragraph too long for one: any text has labels to choose among
_SHORTEST_PAGES = 10  # a last page has at least this part of a page's words
# A turn is a paragraph: a line within one may begin so, too, where a dialogue was pasted.
_USER_TURN = re.compile(r"(?:\A\f?|(?<=\n\n))user: ")


class Paginate(Stage):
    """Base class of every stage that writes pages."""

    name = "paginate"
    writes = Page
    starts_memory = True
    # The setting that bounds most pages from below, in words or tokens.
    size_setting: ClassVar[str | None] = None

    def row_per(self) -> str:
        return "document_id"  # also where pages are read

    def check(self, rows: UnitRows, records: Sequence[Record]) -> None:
        """Raise AccountingError unless the pages, joined, are the document's text."""
        texts = [page.text or "" for page in records if isinstance(page, Page)]
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


def is_asked(page: Page) -> bool:
    """True if a model was asked for the page's end and replied."""
    return page.chosen_by in ("model", "fallback") and page.problem is None


@dataclass(frozen=True, slots=True)
class PagePiece:
    """A paragraph, or consecutive sentences of one that is too long for a window."""

    start_char: int
    end_char: int
    num_words: int


class FromText(Stage):
    """Base class of stages that cut a text. `page_breaks`: pages stay within sections, which form
    feeds separate.

    With `page_ends` pauses no page ends after a heading, or inside a sentence where a pause is
    near, and a last page under a tenth of a page's length joins the one before. any, as in
    ReadAgent: a page may end at any paragraph's end.
    """

    paragraphs: Paragraphs
    page_breaks: bool
    page_ends: Annotated[PageEnds, CAME_LATER] = "any"

    def parts(self, text: str, max_words: int) -> Iterator[list[PagePiece]]:
        """For each section its pieces, which tile it, none over `max_words` words. With `page_ends`
        pauses, a paragraph that does not end at a pause joins the next."""
        part_words = max(1, max_words // _PIECES_PER_WINDOW)
        for first, last in sections(text) if self.page_breaks else [(0, len(text))]:
            spans = paragraph_spans(text[first:last], self.paragraphs)
            paragraph_ends = ends = [first + end for _, end in spans]
            if self.page_ends == "pauses":
                paragraphs = [text[first + start : first + end] for start, end in spans]
                ends = [ends[index] for index in ends_at_pauses(paragraphs, part_words)]
            no_ends = {*paragraph_ends}.difference(ends)
            pieces: list[PagePiece] = []
            start = first
            for end in ends:
                words = num_words(text[start:end])
                if not words and end < last:
                    continue  # a header alone is no piece: it joins the next paragraph
                if words <= max_words:
                    pieces.append(PagePiece(start, end, words))
                else:
                    pieces += _sentence_runs(text, (start, end), no_ends, max_words, part_words)
                start = end
            if pieces:
                yield pieces


def _sentence_runs(
    text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int, part_words: int
) -> list[PagePiece]:
    """A long paragraph as runs of sentences. No run ends at any of `no_ends`, and full stops in a
    session header end no sentence."""
    start, paragraph = span[0], text[slice(*span)]
    head = len(paragraph) - len(without_header(paragraph))
    ends = [start + end for _, end in sentence_spans(paragraph) if end > head]
    runs: list[PagePiece] = []
    for sentence in pairwise([start, *(end for end in ends if end not in no_ends)]):
        for part in _cut(text, sentence, no_ends, max_words, part_words):
            words = runs[-1].num_words + part.num_words if runs else 0
            # Leading white space joins the first sentence: a page without words has no gist.
            if runs and (not runs[-1].num_words or words <= part_words):
                runs[-1] = PagePiece(runs[-1].start_char, part.end_char, words)
            else:
                runs.append(part)
    return runs


def _cut(
    text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int, part_words: int
) -> list[PagePiece]:
    """The sentence as one piece, or as pieces of `part_words` words if over `max_words`."""
    start, sentence = span[0], text[slice(*span)]
    if (words := num_words(sentence)) <= max_words:
        return [PagePiece(*span, words)]
    head = len(sentence) - len(without_header(sentence))
    starts = [start + first for first, _ in word_spans(sentence) if first >= head]
    cuts = [cut for cut in starts[::part_words][1:] if cut not in no_ends]
    parts = pairwise([start, *cuts, span[1]])
    if not is_without_spaces(sentence):
        return [PagePiece(first, end, num_words(text[first:end])) for first, end in parts]
    # A part of so long a word may be short enough to be one by itself.
    return [PagePiece(first, end, bisect_left(starts, end) - bisect_left(starts, first))
            for first, end in parts]  # fmt: skip


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
            totals = [0, *accumulate(part.num_words for part in parts)]
            first = 0
            while first < len(parts):
                target = totals[first] + self.words
                after = min(max(bisect_left(totals, target), first + 1), len(parts))
                before = max(after - 1, first + 1)
                end = min(before, after, key=lambda end: abs(totals[end] - target))
                rest = totals[-1] - totals[end]
                if self.page_ends == "pauses" and rest < self.words / _SHORTEST_PAGES:
                    end = len(parts)
                span = parts[first].start_char, parts[end - 1].end_char
                pages.append(page_of(rows, len(pages), span, "rule"))
                first = end
        return pages


class ByWindows(FromText):
    """Base class of stages whose prompts show windows.

    By the label rule `within_limits` a window holds as many whole paragraphs as fit `max_words`; a
    label follows each paragraph from `min_words` on, and the window's end. By `notebook`, the
    authors' own, it takes paragraphs until it has `max_words`, and the first label stands one
    paragraph earlier. Before the window its prompt shows `preceding_words` words (None: the
    previous page), after it by `following` nothing, an ellipsis, or the next paragraph and an
    ellipsis.
    """

    min_words: PositiveInt
    max_words: PositiveInt
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


class InConversations(ByWindows):
    """Base class of stages whose prompts show the windows of up to `pages_per_conversation` pages
    in one conversation."""

    pages_per_conversation: PositiveInt


class Conversation:
    """The prompts about the windows of one section, page after page: `prompt` may ask where the
    page ends that begins at piece `first`, and `ended` goes on to the next. The stage that chooses
    page ends and a later one that asks about the pages build the same prompts.

    A follow-up shows only new pieces. The labels on earlier ones still hold: a label legal in one
    window is legal in all earlier windows that contain it. After `most_pages` another begins.
    """

    def __init__(self, by: ByWindows, text: str, parts: Sequence[PagePiece]) -> None:
        self.by, self.text, self.parts = by, text, parts
        self.most_pages = by.pages_per_conversation if isinstance(by, InConversations) else 1
        self.totals = [0, *accumulate(part.num_words for part in parts)]  # words before each piece
        self.first = 0
        self._previous = 0  # the piece at which the page before begins
        self._num_pages = 0
        self._num_shown = 0  # pieces that it has shown, from the section's first
        self._latest: PageEnd | None = None  # the prompt about this window
        # The prompt about the window before, and the label at which its page ended.
        self._before: tuple[PageEnd, int] | None = None

    def labels(self) -> list[int]:
        """The places where the page may end (half-open): label 7 stands after the seventh piece.
        The last one is the window's end."""
        by, totals, first, last = self.by, self.totals, self.first, len(self.parts)
        least, most = totals[first] + by.min_words, totals[first] + by.max_words
        if by.label_rule == "within_limits":
            end = max(bisect_right(totals, most) - 1, first + 1)
            labels = [*range(bisect_left(totals, least, lo=first + 1), end), end]
        else:
            end = min(bisect_left(totals, most, lo=first + 1), last)
            labels = [*range(bisect_left(totals, least, lo=first + 2) - 1, end), end]
        if by.page_ends == "pauses":
            # No label leaves a short rest; the text's end replaces a window's end that would.
            shortest = by.max_words / _SHORTEST_PAGES
            labels = [n for n in labels if n < last and totals[-1] - totals[n] >= shortest]
            if end not in labels:
                labels.append(last)
        return labels

    async def prompt(self, labels: Sequence[int], ask: Ask) -> PageEnd:
        """The prompt about the window: the conversation's next if it has room, by `most_pages` and
        the engine's context; else the first of another conversation."""
        end, following = labels[-1], ""
        if self.by.following != "nothing" and end < len(self.parts):
            is_shown = self.by.following == "paragraph"
            following = f"{self._shown(end, end + 1)}\n..." if is_shown else "..."
        paragraphs = tuple(
            Labeled(self._shown(n - 1, n), n if n in labels else None)
            for n in range(self.first + 1, end + 1)
        )
        self._latest = BreakPoint(self._preceding(), paragraphs, following)
        if self._before and self._num_pages < self.most_pages:
            shown = self._num_shown - self.first
            prompt = NextBreakPoint(*self._before, paragraphs, shown, following)
            if await ask.fits(prompt, ask.max_reply_tokens(NextBreakPoint)):
                self._latest = prompt
        return self._latest

    def ended(self, labels: Sequence[int], end: int, is_asked: bool) -> None:
        """Record that the window's page ends at piece `end` (half-open). Unless `is_asked` (a model
        was asked and answered), another conversation begins."""
        is_next = isinstance(self._latest, NextBreakPoint)
        self._num_pages = self._num_pages + 1 if is_next else 1
        self._before = (self._latest, end) if self._latest and is_asked else None
        self._num_shown, self._latest = labels[-1], None
        self._previous, self.first = self.first, end

    def _preceding(self) -> str:
        """The last `preceding_words` words before the window; None: the whole previous page."""
        most = self.by.preceding_words
        if most is None:
            return self._shown(self._previous, self.first)
        start = bisect_right(self.totals, self.totals[self.first] - most, hi=self.first + 1) - 1
        before = self.text[self.parts[max(0, start)].start_char : self.parts[self.first].start_char]
        words = word_spans(before)[-most:] if most else []
        return " ".join(before[words[0][0] :].split()) if words else ""

    def _shown(self, first: int, last: int) -> str:
        """The text of these pieces as prompts show it, without a session header."""
        shown = self.parts[first:last]
        text = self.text[shown[0].start_char : shown[-1].end_char] if shown else ""
        return without_header(text).strip()


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
