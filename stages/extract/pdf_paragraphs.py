"""The paragraphs, headings, lists and tables of a PDF as Markdown: lines are joined by their
places, over the ends of columns and pages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from stages.extract.pdf_lines import Line
from stages.extract.pdf_tables import Table

# A paragraph begins below a gap of so many line distances, after an indent of so many heights of a
# line, and where the height of lines changes by this factor.
_GAP, _INDENT, _TALLER = 1.18, 0.8, 1.15
_TALL_STEP = 1.4  # of a line's height: the lines of a heading are no further apart
_SMALLER = 0.93  # of the text's height: what is smaller is a note
_NEAR = 10  # lines before and after, whose ends say how far a line may go
_LEAST_NEAR = 3  # of these for a full line to be told from a short one
_SPACE = 0.2  # of a line's height: hardly any space is narrower
_ENDS = tuple(".!?:\"'”’)]»。！？…")
_BULLET = re.compile(r"[•◦▪‣·∙●○■–*\x7f-\x9f-]\Z")  # or without a meaning, as LaTeX's
_NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]\Z")
_DASH = re.compile(r"\w(?:—|–|--)\Z")  # without a space before it, it has none behind it
_CUT = re.compile(r"[^\W\d_]-\Z")
_LONGEST_HEADING = 200  # characters
_ONE_HEIGHT = 0.95  # of a heading's height: one that is less low is of the same level
_LEVELS = 3  # of headings that are told apart by their height


@dataclass
class Block:
    """A paragraph, or a table, that begins on a page; `near`: the lines of its kind about its last,
    which say how far that might go."""

    page: int
    first: Line
    last: Line
    near: Sequence[Line] = ()
    text: str = ""
    num_lines: int = 1
    table: Table | None = None

    def add(self, line: Line, between: str, near: Sequence[Line]) -> None:
        self.text += between + line.text
        self.last, self.near, self.num_lines = line, near, self.num_lines + 1

    def is_full(self, line: Line) -> bool:
        """True if the first word of the next line had no room at the end of the last."""
        width = line.words[0].right - line.words[0].left + _SPACE * line.height
        edge = max(near.right for near in self.near)
        return self.last.is_cut or self.last.right + width > edge


@dataclass(frozen=True)
class _Type:
    """The type of most of the document: the height of its text, and the distance of its lines."""

    height: float
    step: float


def paragraphs(pages: Sequence[Sequence[Line | Table]]) -> list[tuple[int, str]]:
    """Paragraphs in reading order as Markdown, each with the page it begins on, from 0."""
    usual = _usual(pages)
    blocks: list[Block] = []
    for page, items in enumerate(pages):
        for column in _columns(items):
            _join(blocks, list(_blocks(page, column, usual)), usual)
    levels = _levels(blocks, usual)
    return _with_lists([(block.page, _markdown(block, levels)) for block in blocks])


def _usual(pages: Sequence[Sequence[Line | Table]]) -> _Type:
    lines = [[item for item in page if isinstance(item, Line)] for page in pages]
    heights: Counter[float] = Counter()
    for line in (line for page in lines for line in page):
        heights[round(line.height, 1)] += len(line.text)
    steps = [above.bottom - line.bottom for page in lines for above, line in pairwise(page)]
    height = heights.most_common(1)[0][0] if heights else 0.0
    return _Type(height, median([step for step in steps if step > 0] or [0.0]))


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


def _blocks(page: int, column: Sequence[Line | Table], usual: _Type) -> Iterator[Block]:
    block: Block | None = None
    for index, item in enumerate(column):
        if isinstance(item, Table):
            yield from [block] if block else []
            block = None
            yield Block(page, _NOWHERE, _NOWHERE, table=item)
            continue
        near = _near(column, index)
        between = None
        if block and not (block.num_lines == 1 and _begin_alike(column, index)):
            between = _between(block, item, usual)
        if block and between is not None:
            block.add(item, between, near)
        else:
            yield from [block] if block else []
            block = Block(page, item, item, near, item.text)
    yield from [block] if block else []


_NOWHERE = Line(())


def _near(column: Sequence[Line | Table], index: int) -> list[Line]:
    """The lines about this one that are of its kind, and itself."""
    line = column[index]
    near = column[max(0, index - _NEAR) : index + _NEAR + 1]
    return [item for item in near if isinstance(item, Line) and isinstance(line, Line)
            and _is_alike(item, line)]  # fmt: skip


def _begin_alike(column: Sequence[Line | Table], index: int) -> bool:
    """True if this line and the one above are indented, and those around them are not: each is the
    first of a paragraph."""
    around = [item for item in column[max(0, index - 2) : index + 2] if isinstance(item, Line)]
    if len(around) < 4:
        return False
    indents = [(item.left - around[0].left) / (around[0].height or 1.0) for item in around]
    return abs(indents[1] - indents[2]) < 0.1 and indents[2] > _INDENT > abs(indents[3])


def _is_alike(one: Line, other: Line) -> bool:
    """True if they are of about one height, and both bold or neither."""
    low, high = sorted((one.height, other.height))
    return high <= _TALLER * low and one.is_bold == other.is_bold


def _between(block: Block, line: Line, usual: _Type) -> str | None:
    """The text between a paragraph and its next line; None where another one begins."""
    above, step = block.last, block.last.bottom - line.bottom
    if not line.height or not above.height:
        return "\n"
    is_tall = line.height > _TALLER * usual.height
    gap = max(_GAP * usual.step, _TALL_STEP * line.height if is_tall else 0)
    if step > gap or not _is_alike(above, line) or _is_item(line, block):
        return None
    if block.num_lines > 1:  # the first line of a paragraph is indented, or hangs
        indent = (line.left - above.left) / line.height
        if indent > _INDENT or (indent < -_INDENT and above.text.endswith(_ENDS)):
            return None
    is_full = block.is_full(line)
    if not is_full and _is_marked(block.first) and line.left < block.first.words[1].left:
        return None
    if is_full:
        return _space(above)
    if above.text.endswith(_ENDS):
        return None
    return " " if line.text[:1].islower() else "\n"


def _space(above: Line) -> str:
    """The text between the words of a line and those of the next: a space, or nothing."""
    return "" if above.is_cut or _DASH.search(above.words[-1].text) else " "


def _is_marked(line: Line) -> bool:
    first = line.words[0].text
    return len(line.words) > 1 and bool(_BULLET.match(first) or _NUMBER.match(first))


def _is_item(line: Line, block: Block) -> bool:
    """True if an item of a list begins with the line; in a sentence a number may begin one, too."""
    is_end = block.text.endswith(_ENDS) or not block.is_full(line)
    below = abs(line.left - block.first.left) < _INDENT * line.height
    is_next = is_end or (_is_marked(block.first) and below)
    return _is_marked(line) and (is_next or bool(_BULLET.match(line.words[0].text)))


def _join(blocks: list[Block], new: list[Block], usual: _Type) -> None:
    """Append the blocks of a column: its first paragraph, or table, goes on with the last of the
    columns before, where that is cut by their ends. Notes and tables may stand between."""
    last = next((block for block in reversed(blocks) if not _is_aside(block, usual)), None)
    first = next((block for block in new if not _is_aside(block, usual)), None)
    if blocks and new and (table := _one_table(blocks[-1], new[0])):
        blocks[-1].table = table
        new.pop(0)
    elif last and first and _goes_on(last, first, is_near=blocks[-1] is last and new[0] is first):
        if first.text[:1].islower() and _CUT.search(last.text):  # PDFium sees no page but one
            last.text, last.last = last.text[:-1], last.last._replace(is_cut=True)
        last.text += _space(last.last) + first.text
        last.last, last.near = first.last, first.near
        new.remove(first)
    blocks += new


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
    return [[" ".join(word.text for word in cell) for cell in block.first.cells()]] if (
        block.num_lines == 1
    ) else []  # fmt: skip


def _is_aside(block: Block, usual: _Type) -> bool:
    """True for a table, and for notes, which are smaller than the text."""
    return block.table is not None or block.first.height < _SMALLER * usual.height


def _goes_on(last: Block, first: Block, is_near: bool) -> bool:
    """True if a paragraph that ends a column goes on in the next. `is_near`: nothing stands between
    them."""
    if not _is_alike(last.last, first.first) or _is_item(first.first, last):
        return False
    if not last.text.endswith(_ENDS):
        return (
            last.last.is_cut or first.text[:1].islower() or (is_near and last.is_full(first.first))
        )
    # A sentence ends with the column's last line: a paragraph does so, too, where the line has
    # room for another word, or the next one is indented.
    indent = first.first.left - first.last.left
    is_indented = first.num_lines > 1 and indent > _INDENT * first.first.height
    is_known = len(last.near) > _LEAST_NEAR
    return is_near and is_known and last.is_full(first.first) and not is_indented


def _levels(blocks: Sequence[Block], usual: _Type) -> dict[float, int]:
    """The level of headings by their height; that of bold ones no taller than the text is one
    more than the lowest."""
    tall = {round(block.first.height, 1) for block in blocks if block.table is None
            and block.first.height >= _TALLER * usual.height > 0
            and len(block.text) <= _LONGEST_HEADING}  # fmt: skip
    levels: dict[float, int] = {}
    level, above = 0, float("inf")
    for height in sorted(tall, reverse=True):
        if height < _ONE_HEIGHT * above:
            level, above = min(level + 1, _LEVELS), height
        levels[height] = level
    return {**levels, 0.0: level + 1}


def _markdown(block: Block, levels: Mapping[float, int]) -> str:
    if block.table is not None:
        return block.table.markdown()
    level = levels.get(round(block.first.height, 1))
    is_bold = (
        block.first.is_bold and block.last.is_bold and not block.text.endswith((".", ",", ";"))
    )
    if len(block.text) > _LONGEST_HEADING or not (level or is_bold):
        first, _, rest = block.text.partition(" ")
        return f"- {rest}" if rest and _BULLET.match(first) else block.text
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
