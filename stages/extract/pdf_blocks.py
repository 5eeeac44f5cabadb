"""Blocks of a PDF's column: its lines joined to paragraphs by their places, and its tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stages.extract.pdf_lines import Line
from stages.extract.pdf_tables import Table

# A paragraph begins below a gap of so many line distances, after an indent of so many heights of a
# line, and where the height of lines changes by this factor.
_GAP, INDENT, TALLER = 1.18, 0.8, 1.15
_TALL_STEP = 1.4  # of a line's height: the lines of a heading are no further apart
_NEAR = 10  # lines before and after, whose ends say how far a line may go
_SPACE = 0.2  # of a line's height: hardly any space is narrower
ENDS = tuple(".!?:\"'”’)]»。！？…")
BULLET = re.compile(r"[•◦▪‣·∙●○■–*\x7f-\x9f-]\Z")  # or without a meaning, as LaTeX's
_NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]\Z")
_DASH = re.compile(r"\w(?:—|–|--)\Z")  # without a space before it, it has none behind it


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
class Type:
    """The type of most of the document: the height of its text, and the distance of its lines."""

    height: float
    step: float


_NOWHERE = Line(())


def blocks(page: int, column: Sequence[Line | Table], usual: Type) -> Iterator[Block]:
    """The paragraphs and tables of a column, in order."""
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


def _near(column: Sequence[Line | Table], index: int) -> list[Line]:
    """The lines about this one that are of its kind, and itself."""
    line = column[index]
    near = column[max(0, index - _NEAR) : index + _NEAR + 1]
    return [item for item in near if isinstance(item, Line) and isinstance(line, Line)
            and is_alike(item, line)]  # fmt: skip


def _begin_alike(column: Sequence[Line | Table], index: int) -> bool:
    """True if this line and the one above are indented, and those around them are not: each is the
    first of a paragraph."""
    around = [item for item in column[max(0, index - 2) : index + 2] if isinstance(item, Line)]
    if len(around) < 4:
        return False
    indents = [(item.left - around[0].left) / (around[0].height or 1.0) for item in around]
    return abs(indents[1] - indents[2]) < 0.1 and indents[2] > INDENT > abs(indents[3])


def is_alike(one: Line, other: Line) -> bool:
    """True if they are of about one height, and both bold or neither."""
    low, high = sorted((one.height, other.height))
    return high <= TALLER * low and one.is_bold == other.is_bold


def _between(block: Block, line: Line, usual: Type) -> str | None:
    """The text between a paragraph and its next line; None where another one begins."""
    above, step = block.last, block.last.bottom - line.bottom
    if not line.height or not above.height:
        return "\n"
    is_tall = line.height > TALLER * usual.height
    gap = max(_GAP * usual.step, _TALL_STEP * line.height if is_tall else 0)
    if step > gap or not is_alike(above, line) or is_item(line, block):
        return None
    if block.num_lines > 1:  # the first line of a paragraph is indented, or hangs
        indent = (line.left - above.left) / line.height
        if indent > INDENT or (indent < -INDENT and above.text.endswith(ENDS)):
            return None
    is_full = block.is_full(line)
    if not is_full and _is_marked(block.first) and line.left < block.first.words[1].left:
        return None
    if is_full:
        return space(above)
    if above.text.endswith(ENDS):
        return None
    return " " if line.text[:1].islower() else "\n"


def space(above: Line) -> str:
    """The text between the words of a line and those of the next: a space, or nothing."""
    return "" if above.is_cut or _DASH.search(above.words[-1].text) else " "


def _is_marked(line: Line) -> bool:
    first = line.words[0].text
    return len(line.words) > 1 and bool(BULLET.match(first) or _NUMBER.match(first))


def is_item(line: Line, block: Block) -> bool:
    """True if an item of a list begins with the line; in a sentence a number may begin one, too."""
    is_end = block.text.endswith(ENDS) or not block.is_full(line)
    below = abs(line.left - block.first.left) < INDENT * line.height
    is_next = is_end or (_is_marked(block.first) and below)
    return _is_marked(line) and (is_next or bool(BULLET.match(line.words[0].text)))
