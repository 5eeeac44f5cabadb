"""The paragraphs, headings, lists and tables of a PDF as Markdown, joined over the ends of columns
and pages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from stages.extract.pdf_blocks import (
    BULLET,
    ENDS,
    INDENT,
    TALLER,
    Block,
    Type,
    blocks,
    is_alike,
    is_item,
    space,
)
from stages.extract.pdf_lines import Line
from stages.extract.pdf_tables import Table

_SMALLER = 0.93  # of the text's height: what is smaller is a note
_LEAST_NEAR = 3  # lines about a line, for a full one to be told from a short one
_LOW = 250  # points: of a page that is full the last line is no higher
_CUT = re.compile(r"[^\W\d_]-\Z")
_LONGEST_HEADING = 200  # characters
_ONE_HEIGHT = 0.95  # of a heading's height: one that is less low is of the same level
_LEVELS = 3  # of headings that are told apart by their height


def paragraphs(pages: Sequence[Sequence[Line | Table]]) -> list[tuple[int, str]]:
    """Paragraphs in reading order as Markdown, each with the page it begins on, from 0."""
    usual = _usual(pages)
    made: list[Block] = []
    for page, items in enumerate(pages):
        for column in _columns(items):
            _join(made, list(blocks(page, column, usual)), usual)
    levels = _levels(made, usual)
    return _with_lists([(block.page, _markdown(block, levels)) for block in made])


def _usual(pages: Sequence[Sequence[Line | Table]]) -> Type:
    lines = [[item for item in page if isinstance(item, Line)] for page in pages]
    heights: Counter[float] = Counter()
    for line in (line for page in lines for line in page):
        heights[round(line.height, 1)] += len(line.text)
    steps = [above.bottom - line.bottom for page in lines for above, line in pairwise(page)]
    height = heights.most_common(1)[0][0] if heights else 0.0
    return Type(height, median([step for step in steps if step > 0] or [0.0]))


def _columns(items: Sequence[Line | Table]) -> Iterator[list[Line | Table]]:
    """The items cut where a line stands above the one before it."""
    column: list[Line | Table] = []
    before: Line | None = None
    for item in items:
        if isinstance(item, Line):
            if before and item.bottom - before.bottom > item.height > 0:
                yield column
                column = []
            before = item
        column.append(item)
    yield column


def _join(blocks: list[Block], new: list[Block], usual: Type) -> None:
    """Append the blocks of a column: its first paragraph, or table, goes on with the last of the
    columns before, where that is cut by their ends. Notes and tables may stand between."""
    last = next((block for block in reversed(blocks) if not _is_aside(block, usual)), None)
    first = next((block for block in new if not _is_aside(block, usual)), None)
    is_table = _join_table(blocks, new)
    is_near = bool(blocks and new) and blocks[-1] is last and new[0] is first
    if last and first and not is_table and _goes_on(last, first, is_near):
        if first.text[:1].islower() and _CUT.search(last.text):  # PDFium sees no page but one
            last.text, last.last = last.text[:-1], last.last._replace(is_cut=True)
        last.text += space(last.last) + first.text
        last.last, last.near = first.last, first.near
        new.remove(first)
    blocks += new


def _join_table(blocks: list[Block], new: list[Block]) -> bool:
    """Move rows from the top of a column to the table that ends the one before; True if any."""
    num = len(new)
    while blocks and new and (table := _one_table(blocks[-1], new[0])):
        blocks[-1].table = table
        new.pop(0)
    return len(new) < num


def _one_table(above: Block, below: Block) -> Table | None:
    """The table that goes on from one column or page to the next, its head not repeated; of one of
    the two parts there may be a single row."""
    first, more = _rows(above), _rows(below)
    if not (above.table or below.table) or not first or not more or len(first[0]) != len(more[0]):
        return None
    return Table([*first, *(more[1:] if more[0] == first[0] else more)])


def _rows(block: Block) -> list[list[str]]:
    """The rows of a table, or the cells of a single line."""
    if block.table is not None:
        return block.table.rows
    cells = block.first.cells() if block.num_lines == 1 else []
    return [[" ".join(word.text for word in cell) for cell in cells]] if cells else []


def _is_aside(block: Block, usual: Type) -> bool:
    """True for a table, and for notes, which are smaller than the text."""
    return block.table is not None or block.first.height < _SMALLER * usual.height


def _goes_on(last: Block, first: Block, is_near: bool) -> bool:
    """True if a paragraph that ends a column goes on in the next. `is_near`: nothing stands between
    them."""
    if not is_alike(last.last, first.first) or is_item(first.first, last):
        return False
    if not last.text.endswith(ENDS):
        return (
            last.last.is_cut or first.text[:1].islower() or (is_near and last.is_full(first.first))
        )
    # A sentence ends with the column's last line: a paragraph does so, too, where the line has
    # room for another word, the page for another line, or the next one is indented.
    indent = first.first.left - first.last.left
    is_indented = first.num_lines > 1 and indent > INDENT * first.first.height
    is_known = len(last.near) > _LEAST_NEAR
    is_full = last.last.bottom < _LOW and last.is_full(first.first)
    return is_near and is_known and is_full and not is_indented


def _levels(blocks: Sequence[Block], usual: Type) -> dict[float, int]:
    """The level of headings by their height; that of bold ones no taller than the text is one
    more than the lowest."""
    tall = {round(block.first.height, 1) for block in blocks if block.table is None
            and block.first.height >= TALLER * usual.height > 0
            and len(block.text) <= _LONGEST_HEADING}  # fmt: skip
    levels: dict[float, int] = {}
    level, above = 0, float("inf")
    for height in sorted(tall, reverse=True):
        if height < _ONE_HEIGHT * above:
            level, above = min(level + 1, _LEVELS), height
        levels[height] = level
    return {**levels, 0.0: level + 1}


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, of one cell or more each, as a Markdown table, whose head is the first one. Rows
    are filled up to one length, and each cell is a line."""
    width = max(map(len, rows))

    def line(row: Sequence[str]) -> str:
        cells = [" ".join(cell.split()).replace("|", "\\|") for cell in row]
        return f"| {' | '.join([*cells, *[''] * (width - len(row))])} |"

    return "\n".join([line(rows[0]), "|" + " --- |" * width, *map(line, rows[1:])])


def _markdown(block: Block, levels: Mapping[float, int]) -> str:
    if block.table is not None:
        return markdown_table(block.table.rows)
    height = round(block.first.height, 1)
    level = levels.get(height) if height else 0  # 0: without places
    is_bold = (
        block.first.is_bold and block.last.is_bold and not block.text.endswith((".", ",", ";"))
    )
    if len(block.text) > _LONGEST_HEADING or not (level or is_bold):
        first, _, rest = block.text.partition(" ")
        return f"- {rest}" if rest and BULLET.match(first) else block.text
    return "#" * (level or levels[0.0]) + " " + " ".join(block.text.split())


def _with_lists(parts: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The items of a list as one paragraph."""
    found: list[tuple[int, str]] = []
    for page, text in parts:
        if found and _follows(found[-1][1], text):
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{text}")
        else:
            found.append((page, text))
    return found


def _follows(above: str, item: str) -> bool:
    """True if the list `above` goes on with the item: by another bullet, or the next number."""
    if item.startswith("- "):
        return above.startswith("- ")
    last = re.match(r"(\d+)\. ", above.rpartition("\n")[2])
    return last is not None and item.startswith(f"{int(last[1]) + 1}. ")
