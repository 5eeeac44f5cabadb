"""Paragraphs after which a text pauses: not between a heading and its text, nor within a sentence.

Heuristics by punctuation and capitals; in scripts without capitals, only by commas and colons.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from stages.text.words import num_words

_MOST_CHARS = 90  # of a heading
_NAMED = re.compile(
    r"(?:chapter|book|part|volume|canto|act|scene|section|letter|appendix)\s+"
    r"(?:[ivxlc]+|\d+|the|one|two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"(?:[IVXLC]{1,7}|\d{1,3})\.?\Z")
_MARKDOWN = re.compile(r"#{1,6}\s")
_SMALL = 3  # letters of words that titles may leave uncapitalized
# A speaker's turn, a table's row, an item of a list: each begins by itself.
_TURN = re.compile(r"[^\W\d_][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){0,2}:\s")
_ITEM = re.compile(r"\||[-*+•]\s|\(?\w{1,3}[.)]\s|#{1,6}\s")
_CLOSING, _OPENING = "\"'”’)]»*_", "\"'“‘([«*_`"
_GOES_ON, _DASHES = ",;:、，；：", "-–—"
_LINE_NUMBER = re.compile(r"(?<=[^\w\s])\s+\d+\Z")  # of a poem


def is_heading(paragraph: str) -> bool:
    """True for a heading of the next text: `## Tides`, `CHAPTER IX.`, `XII`, `The Tower`."""
    if paragraph.lstrip().startswith("#"):
        return all(_MARKDOWN.match(line.strip()) for line in paragraph.strip().split("\n"))
    line = " ".join(paragraph.split())
    if not line or len(line) > _MOST_CHARS or line[-1] in '!?,"”’' or line[0] in '|"“‘':
        return False
    if _NAMED.match(line) or _NUMERAL.match(line) or line.isupper():
        return True
    # A title: all but small words begin with a capital, and no full stop, colon or semicolon ends
    # them.
    first, *later = line.split()
    big = [first, *(word for word in later if len(word) > _SMALL)]
    is_open = line[-1] not in ".;:" and not (_ITEM.match(line) or _TURN.match(line))
    return is_open and all(word[0].isupper() for word in big)


def goes_on(above: str, below: str) -> bool:
    """True if a sentence of the paragraph `above` goes on in `below`, or `above` announces it:
    it ends in a comma, a colon, or without any mark."""
    end, begin = _LINE_NUMBER.sub("", above.strip()), below.strip()
    unquoted = end.rstrip(_CLOSING)
    if not unquoted or not begin or _TURN.match(begin):
        return False
    last = unquoted[-1]
    if last in _GOES_ON:
        return True
    if _ITEM.match(begin):
        return False
    if last in _DASHES:
        return unquoted == end  # in a quotation, the speaker is interrupted
    is_letter = last.lower() != last.upper()
    return is_letter or (last.isdigit() and begin.lstrip(_OPENING)[:1].islower())


def ends_at_pauses(paragraphs: Sequence[str], near: int) -> list[int]:
    """Indexes of the paragraphs after which a page may end, including the last one.

    A heading before its text is never included. A heading before another one, or a paragraph whose
    last sentence goes on, is included only where no pause is within `near` words before or after
    it.
    """
    num = len(paragraphs)
    heads = [is_heading(paragraph) for paragraph in paragraphs]
    orphans = {i for i in range(num - 1) if heads[i] and not heads[i + 1]}
    bad = {i for i in range(num - 1) if heads[i] or goes_on(paragraphs[i], paragraphs[i + 1])}
    pauses = [i for i in range(num) if i not in bad]
    stops = sorted({*pauses, *orphans})
    totals = [0, *accumulate(map(num_words, paragraphs))]

    def is_far(index: int) -> bool:
        before = bisect_left(pauses, index)
        start = pauses[before - 1] + 1 if before else 0
        stop = stops[bisect_right(stops, index)]
        here = totals[index + 1]
        return min(here - totals[start], totals[stop + 1] - here) > near

    return [i for i in range(num) if i not in bad or (i not in orphans and is_far(i))]
