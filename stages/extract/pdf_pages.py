"""The pages of a PDF, as lines and tables.

PDFium gives lines of words with their places, in the order in which they were written into the
file. Columns that were written across the page are separated. pdfplumber gives tables with rules.
"""

import ctypes
import io
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise, takewhile
from statistics import mean
from typing import Any, NamedTuple
from unicodedata import normalize

from pipeline.core.errors import contained
from stages.extract.extracted import SOFT_HYPHEN, UnreadableError

_HYPHEN = "\ufffe"  # PDFium's mark for a hyphen at a line's end; it puts both halves on one line
_OTHER_HYPHEN = "\u2010"  # not marked by PDFium, like a soft hyphen at the page's end
_CUT = re.compile(rf"[^\W\d_][{SOFT_HYPHEN}{_OTHER_HYPHEN}](?!\S)")
_WORD = re.compile(  # an accent that stands apart belongs to the word before it
    rf"[^\s{_HYPHEN}{SOFT_HYPHEN}][^\s{_HYPHEN}]*(?: +[\u0300-\u036f][^\s{_HYPHEN}]*)*"
)
_BELOW = 0.6  # of a line's height: words that are further apart stand below each other
_GAP = 0.9  # of a line's height: words of a sentence have no wider gap between them
# Two columns: at least so many lines, and this share of a page's lines, have a gap at one place,
# with so many words on either side; tables have fewer words.
_COLUMN_LINES, _COLUMN_SHARE, _COLUMN_WORDS = 8, 0.5, 3.5
_BOLD = re.compile(r"bold|black|heavy|semi|demi", re.IGNORECASE)
# Ligatures, and letters in their form within a word, by the common letters that they stand for.
_LETTERS = {
    code: letters
    for code in (*range(0xFB00, 0xFE00), *range(0xFE70, 0xFEFD))
    if " " not in (letters := normalize("NFKC", chr(code)))
} | {ord(SOFT_HYPHEN): "", ord(" "): ""}
# Paths on a page: fewer cannot be a table's rules, more are a drawing.
_LEAST_PATHS, _MOST_PATHS = 4, 3000
_SECONDS = 120.0  # pdfplumber's share of the 600 that a file may take


class Word(NamedTuple):
    """Positions in points, from the page's left."""

    text: str
    left: float = 0.0
    right: float = 0.0


class Line(NamedTuple):
    """A line; `bottom` and `height` in points, y grows upwards. All positions are 0 if unknown.

    `is_cut`: it ends within a word, whose hyphen is left out. `is_bold`: from begin to end.
    `is_table`: its one word is a whole table as Markdown.
    """

    words: tuple[Word, ...]
    bottom: float = 0.0
    height: float = 0.0
    is_bold: bool = False
    is_cut: bool = False
    is_table: bool = False

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    def cells(self) -> "list[Line]":
        """The parts of the line, separated by gaps wider than any within a sentence."""
        ends = [end for end, (before, word) in enumerate(pairwise(self.words), 1)
                if word.left - before.right > _GAP * self.height > 0]  # fmt: skip
        bounds = pairwise([0, *ends, len(self.words)])
        return [self._replace(words=self.words[first:end]) for first, end in bounds]


Table = tuple[str, float, float, float, float]
"""A table as Markdown; its left, bottom, right and top in points, y grows upwards."""


def pages_of(content: bytes) -> tuple[list[list[Line]], Mapping[int, Sequence[Table]], str | None]:
    """The lines of every page; the tables by page, from 0; and a line on pages without text and on
    pages that were not searched for tables. Raises UnreadableError for a PDF that is damaged,
    encrypted or has no text (a scan)."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise UnreadableError("an encrypted PDF; save it without a password") from None
        why = str(error).rstrip(".")
        raise UnreadableError(f"damaged, or no PDF ({why}); fetch it again") from None
    pages: list[list[Line]] = []
    ruled: list[int] = []
    for index in range(len(document)):
        pages.append([])
        with suppress(pypdfium2.PdfiumError):
            page = document[index]
            pages[index] = _by_columns(_lines(page, pypdfium2.raw))
            paths = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_PATH])
            num_paths = sum(1 for _ in islice(paths, _MOST_PATHS + 1)) if pages[index] else 0
            ruled += [index] if _LEAST_PATHS <= num_paths <= _MOST_PATHS else []
            page.close()
    if not any(pages):
        raise UnreadableError(
            f"no text in the {len(pages)} pages of this PDF, which is probably a scan; recognize "
            "its text first (ocrmypdf)"
        )
    tables = _tables(content, ruled) if ruled else {}
    without = {
        "text": [str(index + 1) for index, lines in enumerate(pages) if not lines],
        "tables looked for": [str(index + 1) for index in ruled if index not in tables],
    }
    missing = [
        f"no {what} in {len(numbers)} of {len(pages)} pages "
        f"({', '.join(numbers[:10])}{' ...' if numbers[10:] else ''})"
        for what, numbers in without.items()
        if numbers
    ]
    return pages, tables, "; ".join(missing) or None


def _lines(page: Any, raw: Any) -> list[Line]:
    """The lines of a pypdfium2 page as they were written. `raw`: PDFium's functions."""
    places = page.get_textpage()
    text = places.get_text_range().replace("\0", " ")
    # Beyond Unicode's first plane characters and positions do not correspond, and on a rotated page
    # positions refer to the unrotated paper; PDFium's lines are kept then.
    is_placed = len(text) == places.count_chars() and not page.get_rotation()
    lines: list[Line] = []
    start = 0
    for written in re.split(f"(\r\n|{_HYPHEN})", text):
        spans = [(start + word.start(), start + word.end()) for word in _WORD.finditer(written)]
        start += len(written)
        if not spans:
            continue
        if is_placed:
            lines += _placed(text, spans, places, raw)
        else:
            lines.append(Line(tuple(Word(_letters(text[first:end])) for first, end in spans)))
        if text.startswith(_HYPHEN, start) or _CUT.match(text, spans[-1][1] - 2):
            lines[-1] = _cut(lines[-1], text[start:].lstrip(f"\r\n{_HYPHEN}")[:1])
    places.close()
    return lines


def _placed(text: str, spans: Sequence[tuple[int, int]], places: Any, raw: Any) -> Iterator[Line]:
    """The words as a line, or as several where they stand below each other. A line's height is that
    of its longest word: list markers and note numbers have another."""
    rows: list[list[tuple[Word, float, float, int, int]]] = []
    for first, end in spans:
        left, bottom, _, top = places.get_charbox(first, loose=True)
        if not rows or abs(bottom - rows[-1][-1][1]) > _BELOW * (top - bottom):
            rows.append([])
        word = Word(_letters(text[first:end]), left, places.get_charbox(end - 1, loose=True)[2])
        rows[-1].append((word, bottom, top - bottom, first, end))
    font, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    for row in rows:
        _, bottom, height, *_ = max(row, key=lambda placed: len(placed[0].text))
        is_bold = True
        for index in (row[0][3], row[-1][4] - 1):  # the first character and the last
            raw.FPDFText_GetFontInfo(places, index, font, len(font), flags)
            is_bold = is_bold and bool(_BOLD.search(font.value.decode("utf-8", "replace")))
        yield Line(tuple(word for word, *_ in row), bottom, height, is_bold)


def _cut(line: Line, below: str) -> Line:
    """The line that ends within a word. The hyphen is left out, except before a digit or a name's
    capital letter and at the page's end, where `below`, the next character, is ""."""
    *words, last = line.words
    stem = last.text.removesuffix(_OTHER_HYPHEN)
    is_name = below.isdigit() or (below.isupper() and not stem.isupper())
    sign = "-" if is_name or not below else ""
    return line._replace(words=(*words, last._replace(text=stem + sign)), is_cut=bool(below))


def _letters(text: str) -> str:
    """A word without soft hyphens and ligatures, in composed letters (NFC)."""
    return text if text.isascii() else normalize("NFC", text.translate(_LETTERS))


def _by_columns(lines: Sequence[Line]) -> list[Line]:
    """Split lines that go across two columns; the whole left column comes before the right one."""
    halves = [cells for line in lines if len(cells := line.cells()) == 2]
    if len(halves) < max(_COLUMN_LINES, _COLUMN_SHARE * len(lines)):
        return list(lines)
    begin, end = max(left.right for left, _ in halves), min(right.left for _, right in halves)
    num_words = mean(min(len(cell.words) for cell in cells) for cells in halves)
    if begin >= end or num_words < _COLUMN_WORDS:
        return list(lines)
    gutter = (begin + end) / 2
    whole: list[Line] = []
    right: list[Line] = []
    for line in lines:
        before = tuple(word for word in line.words if word.right <= gutter)
        after = line.words[len(before) :]
        if after and after[0].left < gutter:  # it goes across: a heading of the page
            whole, right = [*whole, *right, line], []
            continue
        whole += [line._replace(words=before, is_cut=line.is_cut and not after)] if before else []
        right += [line._replace(words=after)] if after else []
    return [*whole, *right]


def _tables(content: bytes, pages: Sequence[int]) -> dict[int, list[Table]]:
    """The tables of these pages, by page. Where pdfplumber cannot read a page that PDFium can read,
    or time is up, this page and all after it are left out."""
    import pdfplumber

    tables: dict[int, list[Table]] = {}
    end = time.monotonic() + _SECONDS
    # Of a malformed file pdfminer raises anything.
    with contained(), pdfplumber.open(io.BytesIO(content)) as document:
        for index in takewhile(lambda _: time.monotonic() < end, pages):
            page = document.pages[index]
            tables[index] = [
                (text, left, page.height - foot, right, page.height - top)
                for table in page.find_tables()
                if (text := _markdown(table.extract()))
                for left, top, right, foot in [table.bbox]
            ]
            page.close()
    return tables


def _markdown(rows: Sequence[Sequence[str | None]]) -> str:
    """Rows of equal length as a Markdown table, the first as its head; "" for frames and forms. A
    table has words in several rows and columns, and in at least half of its cells."""
    num_filled = sum(bool(cell) for row in rows for cell in row)
    is_wide = sum(map(any, rows)) > 1 < sum(map(any, zip(*rows, strict=True)))
    if not is_wide or 2 * num_filled < len(rows) * len(rows[0]):
        return ""
    cells = [
        [" ".join(_letters(cell or "").split()).replace("|", "\\|") for cell in row]
        for row in rows
        if any(row)
    ]
    head, *body = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *body])


def with_tables(lines: Sequence[Line], tables: Sequence[Table]) -> list[Line]:
    """The lines, with each table in the place of its first word; without tables that have none."""
    for text, left, bottom, right, top in tables:
        rest: list[Line] = []
        for line in lines:
            is_beside = not bottom <= line.bottom + line.height / 2 <= top
            words = tuple(
                word
                for word in line.words
                if is_beside or not left <= (word.left + word.right) / 2 <= right
            )
            if text and len(words) < len(line.words):
                rest.append(Line((Word(text, left, right),), bottom, is_table=True))
                text = ""
            rest += [line._replace(words=words)] if words else []
        lines = rest
    return list(lines)
