"""The windows of pagination, one after the other, and the prompts that show them: each by itself as
in ReadAgent section 3.1, or several in one conversation, which sends the text that they share once.

Where a page ends decides where the next window starts. So the stage that chooses the ends and one
that asks more about the pages come to the same prompts.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from pydantic import NonNegativeInt, PositiveInt, model_validator

from pipeline.asking.ask import Ask
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
from stages.prompts.readagent.break_point import BreakPoint, Labelled, PageEnd
from stages.prompts.readagent.break_point_follow_up import NextBreakPoint
from stages.text.words import Paragraphs


class FromText(Stage):
    """Base class. `page_breaks`: form feeds separate sections, and pages stay within one."""

    paragraphs: Paragraphs
    page_breaks: bool

    def parts(self, text: str, max_words: int) -> Iterator[list[Piece]]:
        """The pieces of each section, none over `max_words` words but a single longer word."""
        for start, end in sections(text) if self.page_breaks else [(0, len(text))]:
            if found := pieces(text, start, end, self.paragraphs, max_words):
                yield found


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

    def windows(self, text: str, parts: Sequence[Piece]) -> "Windows":
        """The windows of one section of the text."""
        return Windows(self, text, parts)


class InConversations(ByWindows):
    """Base class of stages whose prompts show the windows of up to `pages_per_conversation` pages
    in one conversation."""

    pages_per_conversation: PositiveInt

    def windows(self, text: str, parts: Sequence[Piece]) -> "Windows":
        return Windows(self, text, parts, self.pages_per_conversation)


@dataclass
class Windows:
    """The windows of one section, at that from piece `first`; move on with `ended`.

    A follow-up shows only pieces that its conversation has not shown yet; the labels on others are
    there, as a label that is legal is so in all windows before that hold it.
    """

    by: ByWindows
    text: str
    parts: Sequence[Piece]
    most_pages: int = 1  # of a conversation
    first: int = 0
    previous: int = 0  # the first piece of the page before
    asked: PageEnd | None = None  # the prompt about this window
    before: tuple[PageEnd, int] | None = None  # the last prompt of the conversation, and its reply
    num_pages: int = 0  # of the conversation
    num_shown: int = 0  # pieces that it has shown, from the section's first
    totals: list[int] = field(init=False)
    ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = word_totals(self.parts)
        self.ends = [part.end_char for part in self.parts]

    @property
    def words_left(self) -> int:
        """From the window's first piece to the section's end."""
        return self.totals[-1] - self.totals[self.first]

    def labels(self) -> list[int]:
        """Where the page may end."""
        rule = LABEL_RULES[self.by.label_rule]
        return rule(self.totals, self.first, self.by.min_words, self.by.max_words)

    async def ask_with(self, ask: Ask) -> PageEnd:
        """The prompt about the window: the next of the conversation where that has room for it, by
        its pages and by the engine's context, else the first of another."""
        alone = self._alone()
        self.asked = alone
        if self.before and self.num_pages < self.most_pages:
            shown = self.num_shown - self.first
            prompt = NextBreakPoint(*self.before, alone.paragraphs, shown, alone.following)
            if await ask.fits(prompt, ask.max_reply_tokens(NextBreakPoint)):
                self.asked = prompt
        return self.asked

    def _alone(self) -> BreakPoint:
        labels = self.labels()
        window = Window(self.parts, self.first, labels, self.previous)
        shown = tuple(
            Labelled(
                shown_text(self.text, part.start_char, part.end_char), i if i in labels else None
            )
            for i, part in enumerate(self.parts[self.first : labels[-1]], start=self.first + 1)
        )
        return BreakPoint(
            preceding=window.before(self.text, self.by.preceding_words),
            paragraphs=shown,
            following=window.after(self.text, self.by.following),
        )

    def ended(self, end_char: int) -> None:
        """Move on: the page ends at this character of the text. What was not asked about ends the
        conversation."""
        end = bisect_left(self.ends, end_char) + 1
        is_next = isinstance(self.asked, NextBreakPoint)
        self.num_pages = self.num_pages + 1 if is_next else 1
        self.before = (self.asked, end) if self.asked else None
        self.num_shown = self.labels()[-1]
        self.previous, self.first, self.asked = self.first, end, None


def word_totals(parts: Sequence[Piece]) -> list[int]:
    """Cumulative words: those before each piece, then those of all pieces."""
    return [0, *accumulate(part.num_words for part in parts)]
