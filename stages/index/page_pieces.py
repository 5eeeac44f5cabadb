"""Cut a text into the pieces that pages are built from, paragraphs or parts of long ones; and the
window of one pagination call: where the page may end, and the text shown around it (ReadAgent
section 3.1 and the authors' notebook, read-agent.github.io, cell "Episode Pagination")."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from stages.text.words import (
    PAGE_BREAK,
    Paragraphs,
    num_words,
    paragraph_spans,
    sentence_spans,
    without_header,
    word_spans,
)

# A paragraph too long for a window is cut into pieces of a sixth of one, so that the model can
# choose among labels even in a text without paragraphs.
_PIECES_PER_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, or consecutive sentences of one that is too long for a window."""

    start_char: int
    end_char: int
    num_words: int


def pieces(text: str, start: int, end: int, paragraphs: Paragraphs, max_words: int) -> list[Piece]:
    """Pieces that tile `text[start:end]`, in order, none over `max_words` words but a single longer
    word. Spans are in `text`."""
    found: list[Piece] = []
    first = start
    for _, last in paragraph_spans(text[start:end], paragraphs):
        words = num_words(text[first : start + last])
        if not words and start + last < end:
            continue  # a header alone is no piece: it joins the next paragraph
        if words <= max_words:
            found.append(Piece(first, start + last, words))
        else:
            found += _sentence_runs(text, first, start + last, max_words)
        first = start + last
    return found


def _sentence_runs(text: str, start: int, end: int, max_words: int) -> list[Piece]:
    """A long paragraph as runs of sentences; a sentence over `max_words` is cut between words."""
    most = max(1, max_words // _PIECES_PER_WINDOW)
    runs: list[Piece] = []
    for first, last in _sentences(text[start:end]):
        for a, b in _cut(text[start + first : start + last], max_words, most):
            words = num_words(text[start + first + a : start + first + b])
            # Leading white space joins the first sentence: a page without words has no gist.
            if runs and (not runs[-1].num_words or runs[-1].num_words + words <= most):
                run = runs[-1]
                runs[-1] = Piece(run.start_char, start + first + b, run.num_words + words)
            else:
                runs.append(Piece(start + first + a, start + first + b, words))
    return runs


def _sentences(paragraph: str) -> list[tuple[int, int]]:
    """Spans that tile the paragraph; full stops in a session header end no sentence."""
    head = len(paragraph) - len(without_header(paragraph))
    return list(pairwise([0, *(end for _, end in sentence_spans(paragraph) if end > head)]))


def _cut(sentence: str, max_words: int, most: int) -> list[tuple[int, int]]:
    """Spans that tile the sentence: the whole, or `most` words each if over `max_words`."""
    if num_words(sentence) <= max_words:
        return [(0, len(sentence))]
    head = len(sentence) - len(without_header(sentence))
    starts = [start for start, _ in word_spans(sentence) if start >= head][::most]
    return list(pairwise([0, *starts[1:], len(sentence)]))


def sections(text: str) -> list[tuple[int, int]]:
    """Spans that tile `text`, cut before each form feed."""
    starts = [found.start() for found in re.finditer(PAGE_BREAK, text) if found.start()]
    return list(pairwise([0, *starts, len(text)]))


LabelRule = Literal["within_limits", "notebook"]
Following = Literal["nothing", "ellipsis", "paragraph"]
_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces from `first` up to the last of the legal ends, `labels`; the page before begins
    at piece `previous`. `is_tail`: they are too few words for a call."""

    parts: Sequence[Piece]
    first: int
    labels: Sequence[int]
    previous: int
    is_tail: bool = False

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
