"""The lines of a PDF's page with their places, by PDFium, in reading order.

PDFium gives text in the order in which it was written into the file, which is the order of reading
but for columns that were written line by line across the page; these are told apart here.
"""

import ctypes
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple
from unicodedata import normalize

from stages.extract.extracted import SOFT_HYPHEN

_HYPHEN = "\ufffe"  # PDFium's mark for a hyphen at a line's end; both halves stand on one line
_OTHER_HYPHEN = "\u2010"  # which PDFium does not mark, as a soft one at the page's end
_CUT = re.compile(rf"[^\W\d_][{SOFT_HYPHEN}{_OTHER_HYPHEN}](?!\S)")
_WORD = re.compile(  # an accent that stands apart is of the word before it
    rf"[^\s{_HYPHEN}{SOFT_HYPHEN}][^\s{_HYPHEN}]*(?: +[\u0300-\u036f][^\s{_HYPHEN}]*)*"
)
_SAME_ROW = 0.3  # of a line's height: words that are no further apart stand on one base line
_BELOW = 0.6  # of a line's height: words that are further apart stand below each other
_GAP = 0.9  # of a line's height: a wider gap is none between two words of a sentence
# Two columns: at least so many lines, and this share of a page's, have a gap at one place, with so
# many words on either side; a table has fewer.
_COLUMN_LINES, _COLUMN_SHARE, _COLUMN_WORDS = 8, 0.5, 3.5
_BOLD = re.compile(r"bold|black|heavy|semi|demi", re.IGNORECASE)
_FONT_BYTES = 128
# Ligatures, and letters in the form that they have within a word: by what they are made of.
_LETTERS = {
    code: letters
    for code in (*range(0xFB00, 0xFE00), *range(0xFE70, 0xFEFD))
    if " " not in (letters := normalize("NFKC", chr(code)))
} | {ord(SOFT_HYPHEN): "", ord(" "): ""}


class Word(NamedTuple):
    """Positions in points, from the page's left."""

    text: str
    left: float
    right: float


class Line(NamedTuple):
    """A line; `bottom` and `height` in points, y grows upwards. Without places all are 0.

    `is_cut`: it ends within a word, whose hyphen is left out. `is_bold`: from begin to end.
    """

    words: tuple[Word, ...]
    bottom: float = 0.0
    height: float = 0.0
    is_bold: bool = False
    is_cut: bool = False

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    def cells(self) -> list[tuple[Word, ...]]:
        """Its words, apart where a gap is wider than any within a sentence."""
        found = [[self.words[0]]]
        for before, word in pairwise(self.words):
            if word.left - before.right > _GAP * self.height > 0:
                found.append([])
            found[-1].append(word)
        return [tuple(words) for words in found]


def lines_of(page: Any, raw: Any) -> list[Line]:
    """The lines of a page of pypdfium2; `raw` is its module of PDFium's functions."""
    found = page.get_textpage()
    text = found.get_text_range().replace("\0", " ")
    # Beyond the first plane of Unicode characters and positions differ, and on a turned page they
    # are those of the paper; PDFium's lines are kept then.
    is_placed = len(text) == found.count_chars() and not page.get_rotation()
    places = found if is_placed else None
    lines = list(_lines(text, places, raw))
    found.close()
    return _by_columns(_whole_rows(lines))


def _lines(text: str, places: Any, raw: Any) -> Iterator[Line]:
    start = 0
    for written in re.split(f"(\r\n|{_HYPHEN})", text):
        spans = [(start + found.start(), start + found.end())
                 for found in _WORD.finditer(written)]  # fmt: skip
        start += len(written)
        if not spans:
            continue
        if places is None:
            *lines, last = [Line(tuple(Word(_letters(text[first:end]), 0.0, 0.0)
                                       for first, end in spans))]  # fmt: skip
        else:
            *lines, last = _placed(text, spans, places, raw)
        yield from lines
        is_marked = text.startswith(_HYPHEN, start)
        is_cut = is_marked or _CUT.match(text, spans[-1][1] - 2)
        yield _cut(last, text[start:].lstrip(f"\r\n{_HYPHEN}")[:1]) if is_cut else last


def _cut(line: Line, below: str) -> Line:
    """The line that ends within a word, which goes on with the letter `below`. Its hyphen is left
    out, but before the capital letter of a name or a number; "-" is for it at the page's end."""
    *words, last = line.words
    stem = last.text.removesuffix(_OTHER_HYPHEN)
    is_name = below.isdigit() or (below.isupper() and not stem.isupper())
    sign = "-" if is_name or not below else ""
    return line._replace(words=(*words, last._replace(text=stem + sign)), is_cut=bool(below))


def _letters(text: str) -> str:
    """A word without soft hyphens and ligatures, its letters composed."""
    if text.isascii():
        return text
    return normalize("NFC", text.translate(_LETTERS))


def _placed(text: str, spans: Sequence[tuple[int, int]], places: Any, raw: Any) -> Iterator[Line]:
    """The words at these places of the text as a line, or as several where they stand below each
    other."""
    words: list[Word] = []
    boxes: list[tuple[float, float]] = []  # bottom and height of each word
    begin = 0
    for index, (first, end) in enumerate(spans):
        left, bottom, _, top = places.get_charbox(first, loose=True)
        if boxes and abs(bottom - boxes[-1][0]) > _BELOW * (top - bottom):
            yield _line(words, boxes, _is_bold(places, raw, spans[begin][0], spans[index - 1][1]))
            words, boxes, begin = [], [], index
        right = places.get_charbox(end - 1, loose=True)[2]
        words.append(Word(_letters(text[first:end]), left, right))
        boxes.append((bottom, top - bottom))
    yield _line(words, boxes, _is_bold(places, raw, spans[begin][0], spans[-1][1]))


def _line(words: Sequence[Word], boxes: Sequence[tuple[float, float]], is_bold: bool) -> Line:
    """Its height is that of its longest word: a list's marker, a note's number have another."""
    bottom, height = max(zip(words, boxes, strict=True), key=lambda pair: len(pair[0].text))[1]
    return Line(tuple(words), bottom, height, is_bold)


def _is_bold(places: Any, raw: Any, first: int, end: int) -> bool:
    """True if the first and the last character are bold."""
    name, flags = ctypes.create_string_buffer(_FONT_BYTES), ctypes.c_int()
    for index in (first, end - 1):
        raw.FPDFText_GetFontInfo(places, index, name, _FONT_BYTES, flags)
        if not _BOLD.search(name.value.decode("utf-8", "replace")):
            return False
    return True


def _whole_rows(lines: Sequence[Line]) -> list[Line]:
    """Lines that follow each other on one base line, to the right, as one: cells of a table."""
    found = list(lines[:1])
    for line in lines[1:]:
        before = found[-1]
        is_row = abs(line.bottom - before.bottom) < _SAME_ROW * line.height
        if is_row and line.left >= before.right and not before.is_cut:
            is_bold = before.is_bold and line.is_bold
            found[-1] = before._replace(
                words=before.words + line.words, is_bold=is_bold, is_cut=line.is_cut
            )
        else:
            found.append(line)
    return found


def _by_columns(lines: Sequence[Line]) -> list[Line]:
    """Lines that go across two columns as two, all of the left column before those of the right."""
    gutter = _gutter(lines)
    if gutter is None:
        return list(lines)
    found: list[Line] = []
    right: list[Line] = []
    for line in lines:
        before = tuple(word for word in line.words if word.right <= gutter)
        after = line.words[len(before) :]
        if after and after[0].left < gutter:  # it goes across: a heading of the page
            found, right = [*found, *right, line], []
            continue
        found += [line._replace(words=before, is_cut=line.is_cut and not after)] if before else []
        right += [line._replace(words=after)] if after else []
    return [*found, *right]


def _gutter(lines: Sequence[Line]) -> float | None:
    """The middle of the gap between columns that were written line by line, if they were."""
    halves = [cells for line in lines if len(cells := line.cells()) == 2]
    if len(halves) < max(_COLUMN_LINES, _COLUMN_SHARE * len(lines)):
        return None
    begin = max(left[-1].right for left, _ in halves)
    end = min(right[0].left for _, right in halves)
    if begin >= end or mean(min(map(len, cells)) for cells in halves) < _COLUMN_WORDS:
        return None
    return (begin + end) / 2
