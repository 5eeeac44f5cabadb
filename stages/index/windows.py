"""The windows of pagination (ReadAgent section 3.1 and the authors' notebook, read-agent.github.io,
cell "Episode Pagination"): the pieces that pages are built from, where a page may end, and the
prompts that show the windows. The stage that chooses page ends and a later one that asks about the
pages build the same prompts.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.asking.ask import Ask
from pipeline.work.stage import CAME_LATER, Stage
from stages.prompts.readagent_memory import BreakPoint, Labelled, NextBreakPoint, PageEnd
from stages.text.words import (
    PAGE_BREAK,
    Paragraphs,
    Spans,
    ends_at_pauses,
    is_without_spaces,
    num_words,
    paragraph_spans,
    sentence_spans,
    without_header,
    word_spans,
)

# Of a paragraph too long for a window: so the model can choose among labels in any text.
_PIECES_PER_WINDOW = 6
PageEnds = Literal["any", "pauses"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, or consecutive sentences of one that is too long for a window."""

    start_char: int
    end_char: int
    num_words: int


def pieces(text: str, spans: Spans, max_words: int, page_ends: PageEnds) -> list[Piece]:
    """Pieces that tile the paragraphs `spans` of `text`, in order, none over `max_words` words.
    With `page_ends` pauses, a paragraph that does not end at a pause joins the next."""
    ends = [end for _, end in spans]
    part_words = max(1, max_words // _PIECES_PER_WINDOW)
    if page_ends == "pauses":
        ends = [ends[i] for i in ends_at_pauses([text[a:b] for a, b in spans], part_words)]
    no_ends = {end for _, end in spans}.difference(ends)
    tiles: list[Piece] = []
    first = spans[0][0] if spans else 0
    for end in ends:
        words = num_words(text[first:end])
        if not words and end < ends[-1]:
            continue  # a header alone is no piece: it joins the next paragraph
        if words <= max_words:
            tiles.append(Piece(first, end, words))
        else:
            tiles += _sentence_runs(text, (first, end), no_ends, max_words, part_words)
        first = end
    return tiles


def _sentence_runs(
    text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int, part_words: int
) -> list[Piece]:
    """A long paragraph as runs of sentences. No run ends at any of `no_ends`, and full stops in a
    session header end no sentence."""
    start, paragraph = span[0], text[slice(*span)]
    head = len(paragraph) - len(without_header(paragraph))
    ends = [start + end for _, end in sentence_spans(paragraph) if end > head]
    runs: list[Piece] = []
    for sentence in pairwise([start, *(end for end in ends if end not in no_ends)]):
        for part in _cut(text, sentence, no_ends, max_words, part_words):
            words = runs[-1].num_words + part.num_words if runs else 0
            # Leading white space joins the first sentence: a page without words has no gist.
            if runs and (not runs[-1].num_words or words <= part_words):
                runs[-1] = Piece(runs[-1].start_char, part.end_char, words)
            else:
                runs.append(part)
    return runs


def _cut(
    text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int, part_words: int
) -> list[Piece]:
    """The sentence as one piece, or as pieces of `part_words` words if over `max_words`."""
    start, sentence = span[0], text[slice(*span)]
    if (words := num_words(sentence)) <= max_words:
        return [Piece(*span, words)]
    head = len(sentence) - len(without_header(sentence))
    starts = [start + first for first, _ in word_spans(sentence) if first >= head]
    cuts = [cut for cut in starts[::part_words][1:] if cut not in no_ends]
    parts = pairwise([start, *cuts, span[1]])
    if not is_without_spaces(sentence):
        return [Piece(first, end, num_words(text[first:end])) for first, end in parts]
    # A part of so long a word may be short enough to be one by itself.
    return [Piece(first, end, bisect_left(starts, end) - bisect_left(starts, first))
            for first, end in parts]  # fmt: skip


def sections(text: str) -> Spans:
    """Spans that tile `text`, cut before each form feed."""
    starts = [cut.start() for cut in re.finditer(PAGE_BREAK, text) if cut.start()]
    return list(pairwise([0, *starts, len(text)]))


LabelRule = Literal["within_limits", "notebook"]
Following = Literal["nothing", "ellipsis", "paragraph"]


def shown_text(text: str, start: int, end: int) -> str:
    """That part of the text as prompts show it, without a session header."""
    return without_header(text[start:end]).strip()


SHORTEST_PAGES = 10  # a last page has at least this part of a page's words


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

    def parts(self, text: str, max_words: int) -> Iterator[list[Piece]]:
        """The pieces of each section, none over `max_words` words."""
        for start, end in sections(text) if self.page_breaks else [(0, len(text))]:
            paragraphs = paragraph_spans(text[start:end], self.paragraphs)
            spans = [(start + first, start + last) for first, last in paragraphs]
            if spans:
                yield pieces(text, spans, max_words, self.page_ends)


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
    page ends that begins at piece `first`, and `ended` goes on to the next.

    A follow-up shows only new pieces. The labels on earlier ones still hold: a label legal in one
    window is legal in all earlier windows that contain it. After `most_pages` another begins.
    """

    def __init__(self, by: ByWindows, text: str, parts: Sequence[Piece]) -> None:
        self.by, self.text, self.parts = by, text, parts
        self.most_pages = by.pages_per_conversation if isinstance(by, InConversations) else 1
        self.totals = word_totals(parts)
        self.first = 0
        self._previous = 0  # the piece at which the page before begins
        self._num_pages = 0
        self._num_shown = 0  # pieces that it has shown, from the section's first
        self._latest: PageEnd | None = None  # the prompt about this window
        self._before: tuple[PageEnd, int] | None = None  # that about the one before, and its value

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
            shortest = by.max_words / SHORTEST_PAGES
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
            Labelled(self._shown(n - 1, n), n if n in labels else None)
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
        if first == last:
            return ""
        return shown_text(self.text, self.parts[first].start_char, self.parts[last - 1].end_char)


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """Cumulative words: before each piece, then the sum."""
    return [0, *accumulate(part.num_words for part in parts)]
