"""What pages are made of: paragraphs, and pieces of those that are too long for a window."""

import re
from dataclasses import dataclass
from itertools import pairwise

from stages.text.paragraphs import Paragraphs, paragraph_spans, sentence_spans
from stages.text.words import PAGE_BREAK, num_words, without_header, word_spans

# A paragraph too long for a window is cut into pieces of this share of it, so that a text
# without paragraphs still leaves the model a choice of labels.
_PIECES_PER_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, or a run of sentences of one that is too long."""

    start_char: int
    end_char: int
    num_words: int


def pieces(text: str, start: int, end: int, paragraphs: Paragraphs, max_words: int) -> list[Piece]:
    """What pages are made of, tiling that part of `text`: no piece but a lone word exceeds
    `max_words`."""
    found: list[Piece] = []
    first = start
    for _, last in paragraph_spans(text[start:end], paragraphs):
        words = num_words(text[first : start + last])
        if not words and start + last < end:
            continue  # a header by itself is no page: it stands with the next paragraph
        if words <= max_words:
            found.append(Piece(first, start + last, words))
        else:
            found += _sentence_runs(text, first, start + last, max_words)
        first = start + last
    return found


def _sentence_runs(text: str, start: int, end: int, max_words: int) -> list[Piece]:
    """A paragraph's sentences in runs; a sentence over `max_words` is cut between words."""
    most = max(1, max_words // _PIECES_PER_WINDOW)
    runs: list[Piece] = []
    for first, last in _sentences(text[start:end]):
        for a, b in _cut(text[start + first : start + last], max_words, most):
            words = num_words(text[start + first + a : start + first + b])
            # White space before the first sentence joins it: a page without a word has no gist.
            if runs and (not runs[-1].num_words or runs[-1].num_words + words <= most):
                run = runs[-1]
                runs[-1] = Piece(run.start_char, start + first + b, run.num_words + words)
            else:
                runs.append(Piece(start + first + a, start + first + b, words))
    return runs


def _sentences(paragraph: str) -> list[tuple[int, int]]:
    """Spans that tile the paragraph; a header's full stops end none."""
    head = len(paragraph) - len(without_header(paragraph))
    return list(pairwise([0, *(end for _, end in sentence_spans(paragraph) if end > head)]))


def _cut(sentence: str, max_words: int, most: int) -> list[tuple[int, int]]:
    """Spans that tile the sentence, of `most` words each if it has more than `max_words`."""
    if num_words(sentence) <= max_words:
        return [(0, len(sentence))]
    head = len(sentence) - len(without_header(sentence))
    starts = [start for start, _ in word_spans(sentence) if start >= head][::most]
    return list(pairwise([0, *starts[1:], len(sentence)]))


def sections(text: str) -> list[tuple[int, int]]:
    """Spans that tile `text`, each but the first beginning with a form feed."""
    starts = [found.start() for found in re.finditer(PAGE_BREAK, text) if found.start()]
    return list(pairwise([0, *starts, len(text)]))
