"""Running heads and feet of a PDF's pages, and page numbers: lines at one height of several pages
whose words recur, whose numbers count the pages, or that name two entries of their page, as the
guide words of dictionaries do."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from stages.extract.pdf_lines import Line, Word

_EDGE_ROWS = 3  # at the top and at the foot of a page, that may be running heads
_MOST_ALIKE = 0.7  # of a page's lines: a page that shares more with another one is its copy
_MOST_PAGES = 100  # that a page is compared with for one line
_SAME_HEIGHT = 2.0  # points: rows that are no further apart stand at one height
# Of the rows at one height, this share has to recur or to count; the others are heads of chapters.
_LEAST_SHARE = 0.4
_LEAST_PAGES = 0.3  # of all pages
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
# Case is ignored for words alone: with it "I" is the dotless Turkish letter, too.
_ALONE = re.compile(
    r"(?:\W*(?i:page|seite|p\.|s\.))?\W*(\d{1,4}|[ivxlcIVXLC]{1,7})\W*"
    r"(?:(?i:of|von|/)\W*\d{1,4}\W*)?"
)
_NUMBER = re.compile(r"\b\d{1,4}\b")
_AT_END = re.compile(r"\A\W*\d{1,4}\b|\b\d{1,4}\W*\Z")
_DASH = re.compile(r"\s*[–—]\s*|\s+-\s+")


class _Row(NamedTuple):
    """The lines of a page that stand at one height; `page` counts from 0."""

    page: int
    is_top: bool
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def words(self) -> str:
        """The text without its digits."""
        return _words(self.text)

    @property
    def is_number(self) -> bool:
        """True if it is no more than a page's number."""
        return bool(_ALONE.fullmatch(self.text))

    def texts(self) -> set[str]:
        """Its parts on the left, in the middle, on the right; no label, before what is no head."""
        found = {_text(cell) for line in self.lines for cell in line.cells()}
        return {text for text in found if not text.endswith(":")}

    def numbers(self, at_end: bool = False) -> set[int]:
        """Each number in the row, or at an end of it, less `page`: of a page's number, by what it
        exceeds its place."""
        if alone := _ALONE.fullmatch(self.text):
            return {_value(alone[1]) - self.page}
        found = (_AT_END if at_end else _NUMBER).findall(self.text)
        return {int(_NUMBER.findall(number)[0]) - self.page for number in found}

    def counts(self, steps: set[int]) -> bool:
        """True if it is no more than the page's number, which exceeds its place by a step."""
        return self.is_number and bool(self.numbers() & steps)


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines of each page that are none of its head or foot: what recurs there, or has the
    page's number at an end. A page of nothing else is kept."""
    rows = [_rows(page, lines) for page, lines in enumerate(pages)]
    first = _first_copies(pages)
    guides = {row for page in rows for row in page if _names_entries(row, pages[row.page])}
    heads: dict[tuple[int, str], set[str]] = {}  # of a row: its parts that are none
    steps = {1}  # a page's number less its place in the file
    for whole in _bands([row for page in rows for row in page]):
        band = [row for row in whole if first[row.page] == row.page or row.is_number]
        counted = _counted(band)
        texts = Counter(text for row in band for text in row.texts())
        words = Counter(row.words for row in band)
        # "Exercise 3: ..." counts, too: its number is a page's only beside words that recur.
        recurs = [row in guides or any(texts[text] > 1 for text in row.texts()) for row in band]
        sure = [
            row
            for row, is_again in zip(band, recurs, strict=True)
            if is_again or (row.numbers() & counted and (row.is_number or words[row.words] > 1))
        ]
        if len(sure) >= max(2, _LEAST_PAGES * len({*first}), _LEAST_SHARE * len(band)):
            steps |= counted
            own = _own_texts([row for row in band if row not in guides], counted)
            for row, is_again in zip(band, recurs, strict=True):
                if is_again or row.numbers(at_end=True) & counted:
                    heads[row.page, row.words] = own.get(row, set())
    found = []
    for page, lines in zip(rows, pages, strict=True):
        keys = {row: (first[row.page], row.words) for row in page}
        running = {row: heads[key] for row, key in keys.items() if key in heads}
        left = {id(line): _only(line, running.get(row, ()))
                for row in _outermost(page, running, steps) for line in row.lines}  # fmt: skip
        kept = [line for each in lines if (line := left.get(id(each), each))]
        found.append(kept or [*lines])
    return found


def _first_copies(pages: Sequence[Sequence[Line]]) -> list[int]:
    """For each page the first one that it is a copy of, or itself: copies have most lines in common
    and in one place, and do not tell which are heads."""
    found: list[int] = []
    having: dict[tuple[str, int], list[int]] = {}  # a line: the pages that have it first
    num_lines: list[int] = []
    for page, lines in enumerate(pages):
        own = dict.fromkeys((line.text, round(line.bottom)) for line in lines
                            if not _ALONE.fullmatch(line.text))  # fmt: skip
        num_lines.append(len(own))
        shared = Counter(other for line in own for other in having.get(line, ()))
        other, num = min(shared.items(), key=lambda pair: (-pair[1], pair[0]), default=(page, 0))
        is_copy = num > _MOST_ALIKE * max(len(own), num_lines[other])
        found.append(other if is_copy else page)
        for line in own if not is_copy else ():
            if len(others := having.setdefault(line, [])) < _MOST_PAGES:
                others.append(page)
    return found


def _names_entries(row: _Row, lines: Sequence[Line]) -> bool:
    """True if the row has two parts, and an entry of its page begins with the first, a later one
    with the second."""
    cells = (cell for line in row.lines for cell in line.cells())
    parts = [part for cell in cells for part in _DASH.split(_text(cell)) if part]
    if len(parts) != 2:
        return False
    others = [line.text for line in lines if line not in row.lines]
    first, last = (
        [place for place, text in enumerate(others) if re.match(rf"{re.escape(part)}\b", text)]
        for part in parts
    )
    return bool(first and last) and first[0] < last[-1]


def _own_texts(band: Sequence[_Row], counted: set[int]) -> dict[_Row, set[str]]:
    """The parts of each row that stand on its page alone, where most rows without a page's number
    have such parts: they are titles or names beside a head."""
    words = Counter(_words(text) for row in band for text in row.texts())
    found = {
        row: {text for text in row.texts() if words[_words(text)] == 1}
        for row in band if not row.numbers() & counted
    }  # fmt: skip
    return found if sum(map(bool, found.values())) > len(band) / 2 else {}


def _only(line: Line, texts: Collection[str]) -> Line | None:
    """The line with these of its parts; None where it has none of them."""
    words = tuple(word for cell in line.cells() if _text(cell) in texts for word in cell)
    return line._replace(words=words) if words else None


def _rows(page: int, lines: Sequence[Line]) -> list[_Row]:
    """The rows at the page's edges, from the top down, and the next one."""
    rows: list[list[Line]] = []
    for line in sorted((line for line in lines if line.height), key=lambda line: -line.bottom):
        if rows and rows[-1][0].bottom - line.bottom <= _SAME_HEIGHT:
            rows[-1].append(line)
        else:
            rows.append([line])
    ordered = [tuple(sorted(row, key=lambda line: line.left)) for row in rows]
    top = min(_EDGE_ROWS + 1, (len(rows) + 1) // 2)
    foot = min(_EDGE_ROWS + 1, len(rows) - top)
    return [_Row(page, True, row) for row in ordered[:top]] + [
        _Row(page, False, row) for row in ordered[len(rows) - foot :]
    ]


def _bands(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows of several pages that stand at one height."""
    ordered = sorted(rows, key=lambda row: (row.is_top, row.lines[0].bottom))
    band = ordered[:1]
    for before, row in pairwise(ordered):
        distance = row.lines[0].bottom - before.lines[0].bottom
        if row.is_top != before.is_top or distance > _SAME_HEIGHT:
            yield band
            band = []
        band.append(row)
    if len(band) > 1:
        yield band


def _counted(band: Sequence[_Row]) -> set[int]:
    """By what the pages' numbers exceed their places: what most rows with a number agree in."""
    found = Counter(step for row in band for step in row.numbers())
    least = max(2, _LEAST_SHARE * len(band))
    return {step for step, times in found.items() if times >= least}


def _outermost(rows: Sequence[_Row], running: Collection[_Row], steps: set[int]) -> Iterator[_Row]:
    """The rows of a page from its edges inwards, as long as they are running heads, or no more than
    the page's number. Where that are more than a head has, it is text that recurs."""
    for ordered in (rows, rows[::-1]):
        edge = [row for row in ordered if row.is_top == (ordered is rows)]
        outer = [*takewhile(lambda row: row in running or row.counts(steps), edge)]
        is_head = len(outer) <= _EDGE_ROWS
        yield from (row for row in outer if is_head or row.counts(steps))


def _text(cell: Sequence[Word]) -> str:
    return " ".join(word.text for word in cell)


def _words(text: str) -> str:
    return re.sub(r"\d", "", text)


def _value(number: str) -> int:
    """The value of digits, or of a Roman numeral."""
    if number.isdigit():
        return int(number)
    values = [_ROMAN[letter] for letter in number.lower()]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
