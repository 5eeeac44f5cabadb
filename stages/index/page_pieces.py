"""Cut a text into the pieces that pages are built from: paragraphs, or parts of long ones."""

import re
from dataclasses import dataclass
from itertools import pairwise

from stages.text.paragraphs import Paragraphs, paragraph_spans, sentence_spans
from stages.text.words import PAGE_BREAK, num_words, without_header, word_spans

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
