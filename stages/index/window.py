"""The window of one pagination call: where the page may end, and the text shown around the window.

ReadAgent section 3.1 and the authors' notebook (read-agent.github.io, cell "Episode Pagination").
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stages.index.page_pieces import Piece
from stages.text.words import without_header, word_spans

LabelRule = Literal["within_limits", "notebook"]
Following = Literal["nothing", "ellipsis", "paragraph"]
_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces from `first` up to the last of the legal ends, `labels`; the page before begins
    at piece `previous`."""

    parts: Sequence[Piece]
    first: int
    labels: Sequence[int]
    previous: int

    def before(self, text: str, num_words: int | None) -> str:
        """The last `num_words` words before the window, looking no further back than its section;
        None: the whole previous page."""
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
        """The text shown after the window; empty where there is none."""
        end = self.labels[-1]
        if what == "nothing" or end == len(self.parts):
            return ""
        shown = [self._text(text, end, end + 1)] if what == "paragraph" else []
        return "\n".join([*shown, _ELLIPSIS])

    def _text(self, text: str, first: int, last: int) -> str:
        shown = self.parts[first:last]
        return shown_text(text, shown[0].start_char, shown[-1].end_char) if shown else ""


def shown_text(text: str, start: int, end: int) -> str:
    """That part of the text as prompts have it."""
    return without_header(text[start:end]).strip()


def ends_within_limits(
    totals: Sequence[int], first: int, min_words: int, max_words: int
) -> list[int]:
    """Where the page from piece `first` may end (half-open); a label's number is its end.

    Label 7 stands after the document's seventh piece. The window takes whole pieces while it stays
    within `max_words`; its own end is always legal, others where the page has `min_words` or more.
    `totals`: how many words stand before each piece, and at the end all of them.
    """
    window = max(bisect_right(totals, totals[first] + max_words) - 1, first + 1)
    least = bisect_left(totals, totals[first] + min_words, lo=first + 1)
    return [*range(least, window), window]


def ends_of_notebook(
    totals: Sequence[int], first: int, min_words: int, max_words: int
) -> list[int]:
    """As `ends_within_limits`, by the rule of the authors' notebook.

    The window takes pieces until it has `max_words` or more; the first label stands before the
    piece with which it has `min_words`, so a page may be shorter than one limit or longer than the
    other by that piece.
    """
    window = min(bisect_left(totals, totals[first] + max_words, lo=first + 1), len(totals) - 1)
    least = bisect_left(totals, totals[first] + min_words, lo=first + 2) - 1
    return [*range(least, window), window]


LABEL_RULES: Mapping[LabelRule, Callable[[Sequence[int], int, int, int], list[int]]] = {
    "within_limits": ends_within_limits,
    "notebook": ends_of_notebook,
}
