"""Count and locate the words of a text; split it into paragraphs and sentences, as half-open spans
that tile it; find the paragraphs after which it pauses; arithmetic on spans.

Words are separated by white space. In scripts without spaces, a word is one Chinese or Japanese
character, four characters of Thai, Lao, Burmese or Khmer, or one syllable of Tibetan. In a run of
more than LONGEST_WORD characters of any other script without white space, every four are a word. A
session's header, the line `[...]` after a form feed, counts no words: it is a date.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from pipeline.core.rows import Span

PAGE_BREAK = "\f"
_CHUNK = 1_000_000  # characters

# CHARACTERS: each counts as a word. SYLLABLES: every four do.
CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SYLLABLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_TIBETAN = "\u0f00\u0f18-\u0f39\u0f3e-\u0fbc"  # letters, marks and digits
_UNSPACED = re.compile(f"[{CHARACTERS}{SYLLABLES}{_TIBETAN}]")
_WORD = re.compile(
    rf"[{CHARACTERS}][^\w\s]*|[{SYLLABLES}]{{1,4}}[^\w\s]*"
    rf"|[{_TIBETAN}]{{1,12}}[^\w\s{_TIBETAN}]*|[^\s{CHARACTERS}{SYLLABLES}{_TIBETAN}]+"
)
LONGEST_WORD, _PART_OF_LONGER = 1000, 4  # characters
_SPACED = rf"[^\s{CHARACTERS}{SYLLABLES}]"
_LONGER = re.compile(rf"{_SPACED}{{{LONGEST_WORD + 1}}}")
_HEADER = re.compile(rf"{PAGE_BREAK}(\[[^\]\n]*\])\s*")


def num_words(text: str) -> int:
    """The number of words, without session headers."""
    if PAGE_BREAK in text:
        text = _HEADER.sub(" ", text)
    if (not text.isascii() and _UNSPACED.search(text)) or is_without_spaces(text):
        return sum(1 for _ in _word_spans(text))
    # len(text.split()) without the list of all words: a document may have 100 MB.
    total = 0
    for start in range(0, len(text), _CHUNK):
        total += len(text[start : start + _CHUNK].split())
        # A word across the chunks' boundary was counted in both.
        total -= start > 0 and not text[start].isspace() and not text[start - 1].isspace()
    return total


def is_without_spaces(text: str) -> bool:
    """True for over LONGEST_WORD characters in a row without white space, in Tibetan or in a
    script that puts spaces between words."""
    start = 0
    while len(text) - start > LONGEST_WORD:  # steps over spaced text by the longest word's length
        end = start + LONGEST_WORD + 1
        space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        if space < start and _LONGER.search(text, start, end + LONGEST_WORD):
            return True
        start = space + 1 if space >= start else start + LONGEST_WORD
    return False


def plain(text: str) -> str:
    """The text in lower case and NFC with one space between words, for comparing texts."""
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


def word_spans(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the words in order; words of session headers are included."""
    return list(_word_spans(text))


def _word_spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text):
        start, end = match.span()
        if end - start <= LONGEST_WORD:
            yield start, end
        else:
            parts = range(start, end, _PART_OF_LONGER)
            yield from ((first, min(first + _PART_OF_LONGER, end)) for first in parts)


def words_in_common(text: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence of two texts' words. Bit j of a row is 0 where
    it grows at word j of `other` (Hyyrö 2004, "Bit-parallel LCS-length computation revisited")."""
    bits: dict[str, int] = defaultdict(int)
    for index, word in enumerate(other):
        bits[word] |= 1 << index
    row = ones = (1 << len(other)) - 1
    for word in text:
        both = row & bits.get(word, 0)
        row = ((row + both) | (row - both)) & ones
    return len(other) - row.bit_count()


def header_of(text: str) -> str | None:
    """The session header that `text` begins with, as `[...]`; None without one."""
    header = _HEADER.match(text)
    return header[1] if header else None


def without_header(text: str) -> str:
    header = _HEADER.match(text)
    return text[header.end() :] if header else text


Paragraphs = Literal["lines", "blank_lines", "auto"]
Spans = list[tuple[int, int]]
_PARAGRAPH_BREAKS: dict[str, re.Pattern[str]] = {
    "lines": re.compile(r"\n(?:[^\S\n]*(?:\n|\Z))*"),
    "blank_lines": re.compile(r"\n[^\S\n]*\n\s*"),
}
# A full stop after these or after an initial ends no sentence; "I" is usually a word, no initial.
_ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "Prof", "Rev", "Capt", "St", "vs", r"e\.g", r"i\.e")
_ABBREVIATED = "".join(rf"(?<!\b{word}(?=\.\s))" for word in (*_ABBREVIATIONS, "[A-HJ-Z]"))
# A sentence ends after . ! ? … with closing quotes or brackets, after a CJK full stop, at a blank
# line, and before a line "Speaker: ". The look-behind keeps runs of dots from quadratic time.
_SENTENCE_END = re.compile(
    rf"(?<![.!?…]){_ABBREVIATED}[.!?…]+[\"'”’)\]]*\s+"
    r"|[。！？]+[”’」』）]*\s*"
    r"|\n[^\S\n]*\n\s*"
    r"|\n(?=[^\W\d_][\w .'’-]{0,40}:\s)"
)


def sections(text: str) -> Spans:
    """Half-open spans that tile `text`, cut before each form feed."""
    starts = [cut.start() for cut in re.finditer(PAGE_BREAK, text) if cut.start()]
    return list(pairwise([0, *starts, len(text)]))


def paragraph_spans(text: str, how: Paragraphs) -> Spans:
    """Half-open spans that tile `text`, one per paragraph with the white space after it. `lines`:
    each line is a paragraph. `blank_lines`: blank lines separate them. `auto`: blank_lines if the
    text has one, else lines."""
    if how == "auto":
        how = "blank_lines" if _PARAGRAPH_BREAKS["blank_lines"].search(text.strip()) else "lines"
    first_word = len(text) - len(text.lstrip())  # breaks before it end no paragraph
    ends = (m.end() for m in _PARAGRAPH_BREAKS[how].finditer(text, first_word))
    return list(pairwise(sorted({0, *ends, len(text)})))


def sentence_spans(text: str) -> Spans:
    """Half-open spans that tile `text`, one per sentence with the white space after it, found by
    punctuation, blank lines and speakers."""
    return list(pairwise(sorted({0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)})))


# Pauses are found by punctuation and capitals; in scripts without capitals, only by punctuation.
_HEADING_CHARS = 90  # of a heading
_NUMBERED = re.compile(
    r"(?i:(?:chapter|book|part|volume|canto|act|scene|section|letter|appendix)\s+"
    r"(?:[ivxlc]+|\d+|the|one|two|three|four|five|six|seven|eight|nine|ten)\b)"
    r"|(?:[IVXLC]{1,7}|\d{1,3})\.?\Z"
)
_MARKDOWN = re.compile(r"#{1,6}\s")
_SMALL_LETTERS = 3  # letters of words that titles may leave uncapitalized
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
    if not line or len(line) > _HEADING_CHARS or line[-1] in '!?,"”’' or line[0] in '|"“‘':
        return False
    if _NUMBERED.match(line) or line.isupper():
        return True
    # A title: all but small words begin with a capital; no full stop, colon or semicolon ends it.
    first, *later = line.split()
    big = [first, *(word for word in later if len(word) > _SMALL_LETTERS)]
    is_open = line[-1] not in ".;:" and not (_ITEM.match(line) or _TURN.match(line))
    return is_open and all(word[0].isupper() for word in big)


def goes_on(above: str, below: str) -> bool:
    """True if a sentence of the paragraph `above` goes on in `below`, or `above` announces it."""
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
    """Indexes of the paragraphs after which a page may end; the last is always one.

    Never after a heading that stands before its text. After a heading before another heading, or
    where a sentence goes on in the next paragraph, only if there is no better end within `near`
    words before or after."""
    num = len(paragraphs)
    headings = [is_heading(paragraph) for paragraph in paragraphs]
    before_text = {i for i in range(num - 1) if headings[i] and not headings[i + 1]}
    bad = {i for i in range(num - 1) if headings[i] or goes_on(paragraphs[i], paragraphs[i + 1])}
    pauses = [i for i in range(num) if i not in bad]
    stops = sorted({*pauses, *before_text})
    totals = [0, *accumulate(map(num_words, paragraphs))]

    def is_far(index: int) -> bool:
        before = bisect_left(pauses, index)
        start = pauses[before - 1] + 1 if before else 0
        stop = stops[bisect_right(stops, index)]
        here = totals[index + 1]
        return min(here - totals[start], totals[stop + 1] - here) > near

    return [i for i in range(num) if i not in bad or (i not in before_text and is_far(i))]


def covered_chars(gold: Sequence[Span], covering: Sequence[Span]) -> int:
    """The number of characters of `gold` that are in `covering`; half-open spans that may
    overlap."""
    in_gold, in_covering, in_either = (
        sum(span.end_char - span.start_char for span in merged(spans))
        for spans in (gold, covering, [*gold, *covering])
    )
    return in_gold + in_covering - in_either


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, without empty ones; spans that overlap or touch are joined."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_char, s.end_char)):
        if joined and span.start_char <= joined[-1].end_char:
            joined[-1] = Span(joined[-1].start_char, max(joined[-1].end_char, span.end_char))
        elif span.end_char > span.start_char:
            joined.append(span)
    return tuple(joined)
