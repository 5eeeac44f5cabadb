"""Text of PDFs as Markdown: without running heads, feet and page numbers, paragraphs joined over
lines, columns and pages, headings by the height and weight of their letters."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from statistics import median
from typing import NamedTuple

from stages.extract.extracted import Extracted, extractor
from stages.extract.pdf_pages import Line, pages_of, with_tables

_EDGE_ROWS = 3  # at the top and at the foot of a page that may be running heads
_MOST_ALIKE = 0.7  # share of a page's lines: a page with more in common with another is its copy
_MOST_PAGES = 100  # that a page is compared with for one line
_SAME_HEIGHT = 2.0  # points: rows no further apart are at one height
# This share of the rows at one height must recur or be numbered; the others are chapter heads.
_LEAST_SHARE = 0.4
_LEAST_PAGES = 0.3  # of all pages
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
# Case is ignored only for words: it would make "I" match the dotless Turkish letter.
_ALONE = re.compile(
    r"(?:\W*(?i:page|seite|p\.|s\.))?\W*(\d{1,4}|[ivxlcIVXLC]{1,7})\W*"
    r"(?:(?i:of|von|/)\W*\d{1,4}\W*)?"
)
_NUMBER = re.compile(r"\b\d{1,4}\b")
_AT_END = re.compile(r"\A\W*\d{1,4}\b|\b\d{1,4}\W*\Z")
# A paragraph begins below a gap of so many line distances, after an indent of so many heights of a
# line, and where the height of lines changes by this factor.
_GAP, _INDENT, _TALLER = 1.18, 0.8, 1.15
_TALL_STEP = 1.4  # of a line's height: the lines of a heading are no further apart
_NEAR = 10  # lines before and after whose ends show how long a line may be
_LEAST_NEAR = 3  # lines nearby that are needed to tell a full line from a short one
_SPACE = 0.2  # of a line's height: hardly any space is narrower
_SMALLER = 0.93  # of the text's height: smaller lines are notes
_LOW = 250  # points: the last line of a full page is no higher
_ENDS = tuple(".!?:\"'”’)]»。！？…")
_BULLET = re.compile(r"[•◦▪‣·∙●○■–*\x7f-\x9f-]\Z")  # or control characters, as LaTeX's
_ITEM_NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]\Z")
_DASH = re.compile(r"\w(?:—|–|--)\Z")  # without a space before it, so none after it
_CUT = re.compile(r"[^\W\d_]-\Z")
_LONGEST_HEADING = 200  # characters
_ONE_HEIGHT = 0.95  # of a heading's height: a heading that is not lower has the same level
_LEVELS = 3  # of headings, by their height


@extractor("pdf")
def pdf_text(content: bytes) -> Extracted:
    """The text of all pages. Raises UnreadableError as `pages_of`."""
    pages, tables, missing = pages_of(content)
    bodies = enumerate(without_running_heads(pages))
    texts = paragraphs([with_tables(lines, tables.get(index, ())) for index, lines in bodies])
    return Extracted("\n\n".join(texts), missing)


class _Row(NamedTuple):
    """The lines of a page that stand at one height; `page` counts from 0."""

    page: int
    is_top: bool
    lines: tuple[Line, ...]
    text: str

    @property
    def words(self) -> str:
        return _without_digits(self.text)

    @property
    def is_number(self) -> bool:
        return _ALONE.fullmatch(self.text) is not None

    def parts(self) -> set[str]:
        """The texts side by side in the row, without labels, which end in a colon."""
        texts = {cell.text for line in self.lines for cell in line.cells()}
        return {text for text in texts if not text.endswith(":")}

    def numbers(self, pattern: re.Pattern[str] = _NUMBER) -> set[int]:
        """The row's numbers that match the pattern, or the number that the row is; each minus
        `page`, which gives the same difference on all pages for the pages' numbers."""
        if alone := _ALONE.fullmatch(self.text):
            if alone[1].isdigit():
                return {int(alone[1]) - self.page}
            values = [_ROMAN[letter] for letter in alone[1].lower()]
            pairs = zip(values, [*values[1:], 0], strict=True)
            return {sum(-value if value < after else value for value, after in pairs) - self.page}
        numbers = re.findall(r"\d+", " ".join(pattern.findall(self.text)))
        return {int(number) - self.page for number in numbers}


def _without_digits(text: str) -> str:
    return re.sub(r"\d", "", text)


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines of each page without heads and feet, which are rows that recur at one height of
    several pages, or have the page's number at an end. A page that has nothing else keeps them."""
    edges = [_edge_rows(page, lines) for page, lines in enumerate(pages)]
    originals = _originals(pages)
    # By the page and words of a head's row, the parts of the row that are text.
    heads: dict[tuple[int, str], set[str]] = {}
    offsets = {1}  # a page's number minus its index in the file
    for at_one_height in _bands([row for rows in edges for row in rows]):
        band = [row for row in at_one_height if originals[row.page] == row.page or row.is_number]
        least = max(2, _LEAST_SHARE * len(band))
        times = Counter(offset for row in band for offset in row.numbers())
        counted = {offset for offset, num_rows in times.items() if num_rows >= least}
        parts = Counter(part for row in band for part in row.parts())
        alike = Counter(_without_digits(part) for row in band for part in row.parts())
        words = Counter(row.words for row in band)
        recurring = {row for row in band if any(parts[part] > 1 for part in row.parts())}
        numbered = {row for row in band if row.numbers() & counted}
        # The numbers of "Exercise 3: ..." count up, too: they are pages' beside words that recur.
        paged = {row for row in numbered if row.is_number or words[row.words] > 1}
        if len(recurring | paged) < max(least, _LEAST_PAGES * len({*originals})):
            continue
        offsets |= counted
        for row in band:
            if row in recurring or row.numbers(_AT_END) & counted:
                alone = {part for part in row.parts() if alike[_without_digits(part)] == 1}
                has_text = row in recurring and row not in numbered
                heads[row.page, row.words] = alone if has_text else set()
    bodies: list[list[Line]] = []
    for lines, rows in zip(pages, edges, strict=True):
        keys = {row: (originals[row.page], row.words) for row in rows}
        of_page = {row: heads[key] for row, key in keys.items() if key in heads}
        bodies.append(_without(lines, rows, of_page, offsets))
    return bodies


def _without(
    lines: Sequence[Line], rows: Sequence[_Row], heads: Mapping[_Row, set[str]], offsets: set[int]
) -> list[Line]:
    """The lines of a page without its heads, from its edges inwards, and without its number.
    More rows than a head can have are text that recurs, and stay."""

    def is_number(row: _Row) -> bool:
        return row.is_number and not row.numbers().isdisjoint(offsets)

    texts: dict[int, Line] = {}  # what is left of a line, by its id()
    for is_top in (True, False):
        edge = [row for row in (rows if is_top else rows[::-1]) if row.is_top == is_top]
        outer = [*takewhile(lambda row: row in heads or is_number(row), edge)]
        for row in outer if len(outer) <= _EDGE_ROWS else filter(is_number, outer):
            for line in row.lines:
                rest = (cell.words for cell in line.cells() if cell.text in heads.get(row, ()))
                texts[id(line)] = line._replace(words=tuple(chain.from_iterable(rest)))
    body = (texts.get(id(line), line) for line in lines)
    return [line for line in body if line.words] or [*lines]


def _originals(pages: Sequence[Sequence[Line]]) -> list[int]:
    """For each page the earlier page that it is a copy of, or itself. Copies have most lines in
    common at the same places, so lines that recur in them are no evidence of heads."""
    first: list[int] = []
    originals: dict[int, set[tuple[str, int]]] = {}  # the lines of pages that are no copies
    for page, lines in enumerate(pages):
        texts = [line for line in lines if not _ALONE.fullmatch(line.text)]
        here = {(line.text, round(line.bottom)) for line in texts}
        copied = (other for other, there in [*originals.items()][-_MOST_PAGES:]
                  if len(here & there) > _MOST_ALIKE * max(len(here), len(there)))  # fmt: skip
        first.append(next(copied, page))
        if first[page] == page:
            originals[page] = here
    return first


def _edge_rows(page: int, lines: Sequence[Line]) -> list[_Row]:
    """The rows at the page's top and bottom edges, and one more at each, from the top down."""
    rows: list[list[Line]] = []
    for line in sorted((line for line in lines if line.height), key=lambda line: -line.bottom):
        if rows and rows[-1][0].bottom - line.bottom <= _SAME_HEIGHT:
            rows[-1].append(line)
        else:
            rows.append([line])
    top = min(_EDGE_ROWS + 1, (len(rows) + 1) // 2)
    foot = max(top, len(rows) - _EDGE_ROWS - 1)
    sides = (sorted(row, key=lambda line: line.left) for row in rows)
    return [
        _Row(page, number < top, tuple(row), " ".join(line.text for line in row))
        for number, row in enumerate(sides)
        if not top <= number < foot
    ]


def _bands(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    band: list[_Row] = []
    for row in sorted(rows, key=lambda row: (row.is_top, row.lines[0].bottom)):
        if band and (
            row.is_top != band[-1].is_top
            or row.lines[0].bottom - band[-1].lines[0].bottom > _SAME_HEIGHT
        ):
            yield band
            band = []
        band.append(row)
    yield band


@dataclass
class _Block:
    """A paragraph, or a table; `near`: similar lines around its last one."""

    first: Line
    last: Line
    near: Sequence[Line]
    text: str
    num_lines: int = 1

    def is_full(self, line: Line) -> bool:
        """True if the last line had no space left for the first word of `line`."""
        width = line.words[0].right - line.words[0].left + _SPACE * line.height
        edge = max(near.right for near in self.near)
        return self.last.is_cut or self.last.right + width > edge

    def space(self) -> str:
        """The space between the text and a line that continues it, or none."""
        return "" if self.last.is_cut or _DASH.search(self.last.words[-1].text) else " "


def paragraphs(pages: Sequence[Sequence[Line]]) -> list[str]:
    """Paragraphs, headings, lists and tables in reading order, as Markdown."""
    lines = [[line for line in page if not line.is_table] for page in pages]
    heights: Counter[float] = Counter()
    for line in chain.from_iterable(lines):
        heights[round(line.height, 1)] += len(line.text)
    steps = [above.bottom - line.bottom for page in lines for above, line in pairwise(page)]
    height = heights.most_common(1)[0][0] if heights else 0.0
    gap = _GAP * median([step for step in steps if step > 0] or [0.0])
    blocks: list[_Block] = []
    for page in pages:
        for column in _columns(page):
            _join(blocks, _blocks(column, height, gap), height)
    levels = _levels(blocks, height)
    texts: list[str] = []
    for text in (_markdown(block, levels) for block in blocks):
        # An item continues the list above: another bullet, or the next number.
        last = re.match(r"(\d+)\. ", texts[-1].rpartition("\n")[2]) if texts else None
        if (text.startswith("- ") and texts and texts[-1].startswith("- ")) or (
            last and text.startswith(f"{int(last[1]) + 1}. ")
        ):
            texts[-1] += f"\n{text}"
        else:
            texts.append(text)
    return texts


def _columns(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines, cut before each line that stands above the previous one."""
    column: list[Line] = []
    before: Line | None = None
    for line in lines:
        if before and line.bottom - before.bottom > line.height > 0:
            yield column
            column = []
        before = before if line.is_table else line
        column.append(line)
    yield column


def _blocks(column: Sequence[Line], height: float, gap: float) -> list[_Block]:
    """`gap`: the distance of lines over which a paragraph ends."""
    blocks: list[_Block] = []
    for index, line in enumerate(column):
        around = column[max(0, index - _NEAR) : index + _NEAR + 1]
        near = [other for other in around if _is_alike(other, line)]
        block = blocks[-1] if blocks else None
        between = None
        if block and not (block.num_lines == 1 and _begin_alike(column, index)):
            between = _between(block, line, height, gap)
        if block and between is not None:
            block.text += between + line.text
            block.last, block.near, block.num_lines = line, near, block.num_lines + 1
        else:
            blocks.append(_Block(line, line, near, line.text))
    return blocks


def _begin_alike(column: Sequence[Line], index: int) -> bool:
    """True if this line and the one above are indented, unlike those around them."""
    around = column[max(0, index - 2) : index + 2]
    if len(around) < 4 or any(line.is_table for line in around):
        return False
    indents = [(line.left - around[0].left) / (around[0].height or 1.0) for line in around]
    return abs(indents[1] - indents[2]) < 0.1 and indents[2] > _INDENT > abs(indents[3])


def _is_alike(line: Line, other: Line) -> bool:
    low, high = sorted((line.height, other.height))
    return high <= _TALLER * low and line.is_bold == other.is_bold


def _between(block: _Block, line: Line, height: float, gap: float) -> str | None:
    """The text between a paragraph and its next line; None if the line begins another one."""
    above, step = block.last, block.last.bottom - line.bottom
    if above.is_table or line.is_table:
        return None
    if not line.height or not above.height:
        return "\n"
    is_tall = line.height > _TALLER * height
    most = max(gap, _TALL_STEP * line.height) if is_tall else gap
    if step > most or not _is_alike(above, line) or _is_item(line, block):
        return None
    is_end = above.text.endswith(_ENDS)
    if block.num_lines > 1:  # the first line of a paragraph is indented, or hangs
        indent = (line.left - above.left) / line.height
        if indent > _INDENT or (indent < -_INDENT and is_end):
            return None
    if block.is_full(line):
        return block.space()
    if is_end or (_is_marked(block.first) and line.left < block.first.words[1].left):
        return None
    return " " if line.text[:1].islower() else "\n"


def _is_marked(line: Line) -> bool:
    first = line.words[0].text
    return len(line.words) > 1 and bool(_BULLET.match(first) or _ITEM_NUMBER.match(first))


def _is_item(line: Line, block: _Block) -> bool:
    """True if the line begins a list item; one within a sentence may begin with a number."""
    is_end = block.text.endswith(_ENDS) or not block.is_full(line)
    below = abs(line.left - block.first.left) < _INDENT * line.height
    is_next = is_end or (_is_marked(block.first) and below)
    return _is_marked(line) and (is_next or bool(_BULLET.match(line.words[0].text)))


def _join(blocks: list[_Block], new: list[_Block], height: float) -> None:
    """Append the blocks of a column; its first paragraph may go on with the last one of earlier
    columns. Notes, which are smaller than the text, and tables may stand between."""
    least = _SMALLER * height
    last = next((block for block in reversed(blocks) if block.first.height >= least), None)
    first = next((block for block in new if block.first.height >= least), None)
    is_near = bool(blocks and new) and blocks[-1] is last and new[0] is first
    if last and first and _goes_on(last, first, is_near):
        if first.text[:1].islower() and _CUT.search(last.text):  # PDFium sees no page but one
            last.text, last.last = last.text[:-1], last.last._replace(is_cut=True)
        last.text += last.space() + first.text
        last.last, last.near = first.last, first.near
        new.remove(first)
    blocks += new


def _goes_on(last: _Block, first: _Block, is_near: bool) -> bool:
    """True if a paragraph goes on in the next column. `is_near`: nothing stands between."""
    if not _is_alike(last.last, first.first) or _is_item(first.first, last):
        return False
    is_full = last.is_full(first.first)
    if not last.text.endswith(_ENDS):
        return last.last.is_cut or first.text[:1].islower() or (is_near and is_full)
    # A sentence ends with the column's last line: a paragraph does so, too, where the line has
    # room for another word, the page for another line, or the next one is indented.
    indent = first.first.left - first.last.left
    is_indented = first.num_lines > 1 and indent > _INDENT * first.first.height
    is_low = last.last.bottom < _LOW and len(last.near) > _LEAST_NEAR
    return is_near and is_low and is_full and not is_indented


def _levels(blocks: Sequence[_Block], height: float) -> dict[float, int]:
    """Levels by height; at 0.0 that of bold headings no taller than the text, the lowest."""
    tall = {
        round(block.first.height, 1)
        for block in blocks
        if block.first.height >= _TALLER * height > 0 and len(block.text) <= _LONGEST_HEADING
    }
    levels: dict[float, int] = {}
    level, above = 0, float("inf")
    for tall_height in sorted(tall, reverse=True):
        if tall_height < _ONE_HEIGHT * above:
            level, above = min(level + 1, _LEVELS), tall_height
        levels[tall_height] = level
    return {**levels, 0.0: level + 1}


def _markdown(block: _Block, levels: Mapping[float, int]) -> str:
    height, text = round(block.first.height, 1), block.text
    level = levels.get(height) if height else 0  # 0: without places
    is_bold = block.first.is_bold and block.last.is_bold and not text.endswith((".", ",", ";"))
    if len(text) > _LONGEST_HEADING or not (level or is_bold):
        first, _, rest = text.partition(" ")
        return f"- {rest}" if rest and _BULLET.match(first) else text
    return "#" * (level or levels[0.0]) + " " + " ".join(text.split())
