"""Count and locate the words of a text, also without their punctuation and in any script; split it
into paragraphs and sentences, as half-open spans that tile it; arithmetic on spans.

Words are separated by white space. In scripts without spaces, a word is one Chinese or Japanese
character, four characters of Thai, Lao, Burmese or Khmer, or one syllable of Tibetan. In a run of
more than LONGEST_WORD characters of any other script without white space, every four are a word. A
session's header, the line `[...]` after a form feed, counts no words: it is a date.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import regex

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
_LONGER = re.compile(rf"[^\s{CHARACTERS}{SYLLABLES}]{{{LONGEST_WORD + 1}}}")
_HEADER = re.compile(rf"{PAGE_BREAK}(\[[^\]\n]*\])\s*")


def num_words(text: str) -> int:
    """The number of words, without session headers."""
    if PAGE_BREAK in text:
        text = _HEADER.sub(" ", text)
    is_spaced = text.isascii() or not _UNSPACED.search(text)
    if not is_spaced or is_without_spaces(text):
        return sum(1 for _ in _word_spans(text))
    # len(text.split()) without the list of all words: a document may have 100 MB.
    total = 0
    for start in range(0, len(text), _CHUNK):
        total += len(text[start : start + _CHUNK].split())
        # A word across the chunks' boundary was counted in both.
        total -= start > 0 and not text[start].isspace() and not text[start - 1].isspace()
    return total


def is_without_spaces(text: str) -> bool:
    """True for a run of more than LONGEST_WORD characters without white space in Tibetan, or in
    a script that puts spaces between words."""
    start = 0
    while len(text) - start > LONGEST_WORD:
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
            for first in range(start, end, _PART_OF_LONGER):
                yield first, min(first + _PART_OF_LONGER, end)


Writing = Literal["latin", "spaced", "unspaced"]
_ALONE = rf"[[{CHARACTERS}{SYLLABLES}]&&[\p{{L}}\p{{N}}]]"
_BARE_WORD = regex.compile(rf"(?V1){_ALONE}\p{{M}}*|(?:(?!{_ALONE})[\p{{L}}\p{{M}}\p{{N}}])+")
_LONE_SIGN = regex.compile(rf"(?V1){_ALONE}")
_LATIN, _LETTER = regex.compile(r"\p{Latin}"), regex.compile(r"\p{L}")
_HAN, _KANA = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Katakana}]")


def unicode_words(text: str) -> list[str]:
    """Lower-case words without punctuation after Unicode's NFKC: runs of letters, marks and digits;
    in scripts without spaces every character with its marks."""
    return list(_BARE_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


@lru_cache(maxsize=4096)  # the same references are read for every method
def writing_of(text: str) -> Writing:
    """The writing of most words of `text`: Latin letters (also for texts without letters),
    others with spaces between words (Cyrillic, Arabic, Korean ...), or without (Chinese, Thai
    ...)."""
    if text.isascii():
        return "latin"
    words = [word for word in unicode_words(text) if _LETTER.search(word)]
    num_latin = sum(1 for word in words if _LATIN.search(word))
    if 2 * num_latin >= len(words):
        return "latin"
    num_unspaced = sum(1 for word in words if _LONE_SIGN.search(word))
    return "unspaced" if 2 * num_unspaced > len(words) - num_latin else "spaced"


def is_chinese(text: str) -> bool:
    """True for Chinese characters without kana, which Japanese has."""
    return bool(_HAN.search(text)) and not _KANA.search(text)


def words_in_common(text: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence of two texts' words.

    Each row of the table is one integer (Hyyrö 2004, "Bit-parallel LCS-length computation
    revisited"): bit j is 0 where the row's value grows at word j of `other`.
    """
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
_BREAKS: dict[str, re.Pattern[str]] = {
    "lines": re.compile(r"\n"),
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


def paragraph_spans(text: str, how: Paragraphs) -> Spans:
    """Half-open spans that tile `text`, one per paragraph, its trailing white space included.

    `lines`: every line is a paragraph (transcripts). `blank_lines`: blank lines separate them.
    `auto`: `blank_lines` where the text has one, else `lines`. White space before the first word
    belongs to the first paragraph; a text without any word is one paragraph.
    """
    if how == "auto":
        how = "blank_lines" if _BREAKS["blank_lines"].search(text.strip()) else "lines"
    first_word = len(text) - len(text.lstrip())  # breaks before it end no paragraph
    ends = [m.end() for m in _BREAKS[how].finditer(text, first_word)] + [len(text)]
    spans: Spans = []
    start = 0
    for end in ends:
        if text[start:end].strip():
            spans.append((start, end))
            start = end
        elif spans and end > start:
            spans[-1] = (spans[-1][0], end)
            start = end
    return spans or ([(0, len(text))] if text else [])


def sentence_spans(text: str) -> Spans:
    """Half-open spans that tile `text`, one per sentence, its trailing white space included.

    A heuristic by punctuation, blank lines and speakers, good enough to cut at and to rank.
    """
    return list(pairwise(sorted({0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)})))


def covered_chars(gold: Sequence[Span], read: Sequence[Span]) -> int:
    """The number of characters of `gold` that are in `read`; half-open spans that may overlap."""
    gold, read = merged(gold), merged(read)
    pairs = ((a, b) for a in gold for b in read)
    return sum(
        max(0, min(a.end_char, b.end_char) - max(a.start_char, b.start_char)) for a, b in pairs
    )


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order, without empty ones; spans that overlap or touch are joined."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_char, s.end_char)):
        if joined and span.start_char <= joined[-1].end_char:
            end_char = max(joined[-1].end_char, span.end_char)
            joined[-1] = Span(joined[-1].start_char, end_char)
        elif span.end_char > span.start_char:
            joined.append(span)
    return tuple(joined)
