"""The windows of pagination (ReadAgent section 3.1 and the authors' notebook, read-agent.github.io,
cell "Episode Pagination"): the pieces that pages are built from, the places where a page may end,
and the prompts that show the windows, each by itself or several in one conversation, which sends
shared text once.

The stage that chooses page ends and a later one that asks about the pages build the same prompts,
as each end determines the start of the next window.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

# A paragraph too long for a window is cut into pieces of a sixth of one, so that the model can
# choose among labels even in a text without paragraphs.
_PIECES_PER_WINDOW = 6
PageEnds = Literal["any", "pauses"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, or consecutive sentences of one that is too long for a window."""

    start_char: int
    end_char: int
    num_words: int


def pieces(text: str, spans: Spans, max_words: int, page_ends: PageEnds = "any") -> list[Piece]:
    """Pieces that tile the paragraphs `spans` of `text`, in order, none over `max_words` words.
    With `page_ends` pauses, a paragraph that does not end at a pause joins the next."""
    ends = [end for _, end in spans]
    near = _part(max_words)
    if page_ends == "pauses":
        ends = [ends[i] for i in ends_at_pauses([text[a:b] for a, b in spans], near)]
    no_ends = {end for _, end in spans}.difference(ends)
    found: list[Piece] = []
    first = spans[0][0] if spans else 0
    for end in ends:
        words = num_words(text[first:end])
        if not words and end < ends[-1]:
            continue  # a header alone is no piece: it joins the next paragraph
        if words <= max_words:
            found.append(Piece(first, end, words))
        else:
            found += _sentence_runs(text, (first, end), no_ends, max_words)
        first = end
    return found


def _part(max_words: int) -> int:
    return max(1, max_words // _PIECES_PER_WINDOW)


def _sentence_runs(
    text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int
) -> list[Piece]:
    """A long paragraph as runs of sentences; a sentence over `max_words` is cut between words. No
    run ends at any of `no_ends`."""
    most = _part(max_words)
    runs: list[Piece] = []
    for sentence in _sentences(text, span, no_ends):
        for part in _cut(text, sentence, no_ends, max_words):
            words = runs[-1].num_words + part.num_words if runs else 0
            # Leading white space joins the first sentence: a page without words has no gist.
            if runs and (not runs[-1].num_words or words <= most):
                runs[-1] = Piece(runs[-1].start_char, part.end_char, words)
            else:
                runs.append(part)
    return runs


def _sentences(text: str, span: tuple[int, int], no_ends: Collection[int]) -> Spans:
    """Spans that tile the paragraph; full stops in a session header end no sentence."""
    start, paragraph = span[0], text[slice(*span)]
    head = len(paragraph) - len(without_header(paragraph))
    ends = [start + end for _, end in sentence_spans(paragraph) if end > head]
    return list(pairwise([start, *(end for end in ends if end not in no_ends)]))


def _cut(text: str, span: tuple[int, int], no_ends: Collection[int], max_words: int) -> list[Piece]:
    """The sentence as one piece, or as pieces with equal numbers of words if over `max_words`."""
    start, sentence = span[0], text[slice(*span)]
    if (words := num_words(sentence)) <= max_words:
        return [Piece(*span, words)]
    head = len(sentence) - len(without_header(sentence))
    found = [start + first for first, _ in word_spans(sentence) if first >= head]
    cuts = [cut for cut in found[:: _part(max_words)][1:] if cut not in no_ends]
    parts = pairwise([start, *cuts, span[1]])
    if not is_without_spaces(sentence):
        return [Piece(first, end, num_words(text[first:end])) for first, end in parts]
    # A part of so long a word may be short enough to be one by itself.
    return [Piece(first, end, bisect_left(found, end) - bisect_left(found, first))
            for first, end in parts]  # fmt: skip


def sections(text: str) -> Spans:
    """Spans that tile `text`, cut before each form feed."""
    starts = [found.start() for found in re.finditer(PAGE_BREAK, text) if found.start()]
    return list(pairwise([0, *starts, len(text)]))


LabelRule = Literal["within_limits", "notebook"]
Following = Literal["nothing", "ellipsis", "paragraph"]
_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces from `first` to the last of the legal ends, `labels`.

    `previous` is the piece at which the page before begins. `is_tail`: there are too few words for
    a call.
    """

    parts: Sequence[Piece]
    first: int
    labels: Sequence[int]
    previous: int
    is_tail: bool = False

    def before(self, text: str, num_words: int | None) -> str:
        """The last `num_words` words before the window in its section; None: the whole previous
        page."""
        if num_words is None:
            return self._text(text, self.previous, self.first)
        start, found = self.first, 0
        while start > 0 and found < num_words:
            start -= 1
            found += self.parts[start].num_words
        before = text[self.parts[start].start_char : self.parts[self.first].start_char]
        words = word_spans(before)[-num_words:] if num_words else []
        return " ".join(before[words[0][0] :].split()) if words else ""

    def after(self, text: str, what: Following) -> str:
        """The text shown after the window; "" for none."""
        end = self.labels[-1]
        if what == "nothing" or end == len(self.parts):
            return ""
        shown = [self._text(text, end, end + 1)] if what == "paragraph" else []
        return "\n".join([*shown, _ELLIPSIS])

    def _text(self, text: str, first: int, last: int) -> str:
        shown = self.parts[first:last]
        return shown_text(text, shown[0].start_char, shown[-1].end_char) if shown else ""


def shown_text(text: str, start: int, end: int) -> str:
    """That part of the text as prompts show it, without a session header."""
    return without_header(text[start:end]).strip()


def ends_within_limits(
    totals: Sequence[int], first: int, min_words: int, max_words: int
) -> list[int]:
    """The places where the page from piece `first` may end (half-open); a label's number is its
    end.

    Label 7 stands after the document's seventh piece. The window takes whole pieces up to
    `max_words`; its own end is always legal, other ends from `min_words` on. `totals` has the words
    before each piece, and at the end the sum.
    """
    window = max(bisect_right(totals, totals[first] + max_words) - 1, first + 1)
    least = bisect_left(totals, totals[first] + min_words, lo=first + 1)
    return [*range(least, window), window]


def ends_of_notebook(
    totals: Sequence[int], first: int, min_words: int, max_words: int
) -> list[int]:
    """As `ends_within_limits`, by the rule of the authors' notebook.

    The window takes pieces until it has `max_words` or more; the first label stands before the
    piece that reaches `min_words`. So a page may pass either limit by one piece.
    """
    window = min(bisect_left(totals, totals[first] + max_words, lo=first + 1), len(totals) - 1)
    least = bisect_left(totals, totals[first] + min_words, lo=first + 2) - 1
    return [*range(least, window), window]


LABEL_RULES: Mapping[LabelRule, Callable[[Sequence[int], int, int, int], list[int]]] = {
    "within_limits": ends_within_limits,
    "notebook": ends_of_notebook,
}


def without_short_rest(labels: Sequence[int], totals: Sequence[int], least: float) -> list[int]:
    """The labels that leave no words after them or at least `least`. If the window's end leaves
    fewer, the text's end replaces it."""
    end = len(totals) - 1
    kept = [label for label in labels if label < end and totals[end] - totals[label] >= least]
    return kept if kept and kept[-1] == labels[-1] else [*kept, end]


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
            own = paragraph_spans(text[start:end], self.paragraphs)
            spans = [(start + first, start + last) for first, last in own]
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

    def window(
        self, parts: Sequence[Piece], totals: Sequence[int], first: int, previous: int
    ) -> Window:
        """The window of the page from piece `first`; the page before begins at `previous`."""
        labels = LABEL_RULES[self.label_rule](totals, first, self.min_words, self.max_words)
        if self.page_ends == "pauses":
            labels = without_short_rest(labels, totals, self.max_words / SHORTEST_PAGES)
        return Window(parts, first, labels, previous)

    def break_point(self, text: str, window: Window) -> BreakPoint:
        """The prompt for the page's end, by itself."""
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

    def conversation(self, text: str) -> "Conversation":
        """The conversation about the windows of one section of the text."""
        return Conversation(self, text, most_pages=1)


class InConversations(ByWindows):
    """Base class of stages whose prompts show the windows of up to `pages_per_conversation` pages
    in one conversation."""

    pages_per_conversation: PositiveInt

    def conversation(self, text: str) -> "Conversation":
        return Conversation(self, text, self.pages_per_conversation)


@dataclass
class Conversation:
    """The prompts about the windows of one section; call `prompt` and then `ended` for each in
    order.

    A follow-up shows only new pieces. The labels on earlier ones still hold: a label legal in one
    window is legal in all earlier windows that contain it.
    """

    by: ByWindows
    text: str
    most_pages: int  # before another begins
    num_pages: int = 0
    num_shown: int = 0  # pieces that it has shown, from the section's first
    latest: PageEnd | None = None  # the prompt about this window
    before: tuple[PageEnd, int] | None = None  # the prompt about the window before, and its value

    async def prompt(self, window: Window, ask: Ask) -> PageEnd:
        """The prompt about the window: the conversation's next if it has room, by `most_pages` and
        the engine's context; else the first of another conversation."""
        alone = self.by.break_point(self.text, window)
        self.latest = alone
        if self.before and self.num_pages < self.most_pages:
            shown = self.num_shown - window.first
            prompt = NextBreakPoint(*self.before, alone.paragraphs, shown, alone.following)
            if await ask.fits(prompt, ask.max_reply_tokens(NextBreakPoint)):
                self.latest = prompt
        return self.latest

    def ended(self, window: Window, end: int, is_asked: bool) -> None:
        """Record that the window's page ends at piece `end` (half-open). Unless `is_asked` (a model
        was asked and answered), another conversation begins."""
        self.num_pages = self.num_pages + 1 if isinstance(self.latest, NextBreakPoint) else 1
        self.before = (self.latest, end) if self.latest and is_asked else None
        self.num_shown, self.latest = window.labels[-1], None


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """Cumulative words: before each piece, then the sum."""
    return [0, *accumulate(part.num_words for part in parts)]
