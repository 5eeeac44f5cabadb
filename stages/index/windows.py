"""The windows of pagination, one after the other, and the prompts that show them: each by itself as
in ReadAgent section 3.1, or several in one conversation, which sends the text that they share once.

Where a page ends decides where the next window starts. So the stage that chooses the ends and one
that asks more about the pages come to the same prompts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.asking.ask import Ask
from pipeline.work.stage import Stage
from stages.index.page_pieces import (
    LABEL_RULES,
    Following,
    LabelRule,
    PageEnds,
    Piece,
    Window,
    pieces,
    sections,
    shown_text,
    without_short_rest,
)
from stages.prompts.pages_and_gists import BreakPoint, Labelled, NextBreakPoint, PageEnd
from stages.text.words import Paragraphs, paragraph_spans

SHORTEST_PAGES = 10  # a last page has at least this part of a page's words


class FromText(Stage):
    """Base class. `page_breaks`: form feeds separate sections, and pages stay within one.

    With `page_ends` pauses no page ends after a heading, nor inside a sentence where a pause is
    near, and a last page under a tenth of a page's length joins the one before; any: as in
    ReadAgent, every paragraph's end is as good.
    """

    paragraphs: Paragraphs
    page_breaks: bool
    page_ends: PageEnds = "any"

    def hashed(self) -> dict[str, Any]:
        """Its kind and settings, but for `page_ends` any: those steps keep their ids."""
        own = super().hashed()
        return {key: own[key] for key in own if (key, own[key]) != ("page_ends", "any")}

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
    label follows each paragraph where the page would have `min_words` or more, and the window's
    end. By `notebook`, the authors' own, it takes paragraphs until it has `max_words`, and the
    first label stands one paragraph earlier. The `preceding_words` words before the window (None:
    the previous page) are shown with it, and by `following` nothing, an ellipsis, or the next
    paragraph and an ellipsis.
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
        """The question for the page's end, by itself."""
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
    """The prompts about the windows of one section, in order; after each of them `ended`.

    A follow-up shows only pieces that its conversation has not shown yet; the labels on others are
    there, as a label that is legal is so in all windows before that hold it.
    """

    by: ByWindows
    text: str
    most_pages: int  # before another begins
    num_pages: int = 0
    num_shown: int = 0  # pieces that it has shown, from the section's first
    latest: PageEnd | None = None  # the prompt about this window
    before: tuple[PageEnd, int] | None = None  # that about the window before, and the value replied

    async def prompt(self, window: Window, ask: Ask) -> PageEnd:
        """The prompt about the window: the next of the conversation where that has room for it, by
        its pages and by the engine's context, else the first of another."""
        alone = self.by.break_point(self.text, window)
        self.latest = alone
        if self.before and self.num_pages < self.most_pages:
            shown = self.num_shown - window.first
            prompt = NextBreakPoint(*self.before, alone.paragraphs, shown, alone.following)
            if await ask.fits(prompt, ask.max_reply_tokens(NextBreakPoint)):
                self.latest = prompt
        return self.latest

    def ended(self, window: Window, end: int, is_asked: bool) -> None:
        """The page of the window ends at this piece (half-open), whether that `is_asked` and was
        answered or not: then another conversation begins."""
        self.num_pages = self.num_pages + 1 if isinstance(self.latest, NextBreakPoint) else 1
        self.before = (self.latest, end) if self.latest and is_asked else None
        self.num_shown, self.latest = window.labels[-1], None


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """Cumulative words: those before each piece, then those of all pieces."""
    return [0, *accumulate(part.num_words for part in parts)]
