"""Parts that fit the width of a terminal, drawn by rich: no cell is cut, no line is longer than the
terminal.

Columns without any value are left out and named below. Columns that do not fit beside the first
ones move to further tables under the first, which begin with the same columns. Long names are
wrapped at commas and spaces, long texts at spaces.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from jobs.output.cells import Heading, Measured, Part, Table, cell, on_one_line, printable

LEAST = 40  # characters; narrower terminals get tables of this width
_GAP = 2  # spaces between columns
_KEY = 32  # characters that a single first column may take, or a third of the terminal
_SHORT = 8  # characters of a heading that is not wrapped
_TEXT = 24  # characters that a column of texts keeps, to stay beside the others
_LEFT_OUT = "Empty in this run, so not shown: {}."
_BREAK = "\x1f"  # white space for rich, of no width
_RULE = Box("    \n    \n ─  \n    \n    \n    \n    \n    \n")


def console(width: int) -> Console:
    """A rich console of so many columns that only makes text, with no markup and no colors."""
    return Console(
        width=width,
        color_system=None,
        emoji=False,
        highlight=False,
        markup=False,
        force_terminal=False,  # else 80 columns where TERM=dumb
    )


def drawn(width: int, table: RichTable) -> str:
    """A rich table as text, without spaces at the ends of lines."""
    made = console(width)
    with made.capture() as capture:
        made.print(table)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())


def fitted_to_terminal(parts: Iterable[Part], width: int) -> str:
    """The parts for a terminal of `width` characters."""
    width = max(width, LEAST)
    return "\n\n".join(text for part in parts for text in _texts(part, width))


def _texts(part: Part, width: int) -> list[str]:
    if isinstance(part, Table):
        return _tables(part, width) if part.rows else ["no rows"]
    if isinstance(part, Heading):
        return [_paragraph(part.text, width)]
    return [_paragraph(part, width) if isinstance(part, str) else part.text]


def _paragraph(text: str, width: int) -> str:
    """Every line wrapped at spaces; a word longer than the terminal stays whole."""
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in printable(text).splitlines()
    )


@dataclass(frozen=True)
class _Column:
    name: str
    heading: str
    cells: list[str]
    is_left: bool
    is_text: bool  # may be wrapped
    width: int

    @classmethod
    def of(cls, table: Table, name: str) -> "_Column":
        """One column; a best value has a mark, and the others a space in its place."""
        n = table.shared_n(name)
        heading = cell(name) if n is None else f"{cell(name)} (n={n})"
        values = [row[name] for row in table.rows]
        cells = [cell(value, n) for value in values]
        best = [isinstance(value, Measured) and value.is_best for value in values]
        if any(best):
            cells = [text + ("*" if own else " ") for text, own in zip(cells, best, strict=True)]
        words = [heading] if cell_len(heading) <= _SHORT else heading.split()
        is_text = table.is_left(name) or any(" " in text.strip() for text in cells)
        width = max([1, *map(cell_len, (*cells, *words))])
        return cls(name, heading, cells, table.is_left(name), is_text, width)


def _tables(table: Table, width: int) -> list[str]:
    """The tables, what columns they lack, and what their marks mean."""
    names = table.names() if table.keeps_empty else table.filled()
    empty = [name for name in table.names() if name not in names]
    columns = [_Column.of(table, name) for name in names]
    spare = [name for name in table.spare if name in names]
    while spare and len(_blocks(columns, table.num_keys, width)) > 1:
        name = spare.pop(0)
        columns = [column for column in columns if column.name != name]
    found = [_drawn(block, width) for block in _blocks(columns, table.num_keys, width)]
    if table.about_best and any(text.endswith("*") for one in columns for text in one.cells):
        found.append(_paragraph(table.about_best, width))
    if empty and not table.spare:
        found.append(_paragraph(_LEFT_OUT.format(", ".join(empty)), width))
    return found


def _blocks(columns: Sequence[_Column], num_keys: int, width: int) -> list[list[_Column]]:
    """The columns in as many tables as they need. Keys that are texts share two thirds of the
    terminal; none counts for more than a single one would."""
    keys = columns[:num_keys]
    most = max(_KEY, width // 3)
    most = min(most, 2 * width // 3 // max(1, sum(key.is_text for key in keys)))
    left = width + _GAP - _taken(keys, most)
    blocks = [list(keys)]
    for column in columns[num_keys:]:
        if len(blocks[-1]) > num_keys and _taken([*blocks[-1][num_keys:], column], _TEXT) > left:
            blocks.append(list(keys))
        blocks[-1].append(column)
    return blocks


def _taken(columns: Sequence[_Column], most: int) -> int:
    """The characters that columns take at least, if texts are wrapped to `most`."""
    return sum(min(one.width, most) if one.is_text else one.width for one in columns) + (
        _GAP * len(columns)
    )


def _drawn(columns: Sequence[_Column], width: int) -> str:
    """One table: headings, a rule, rows whose cells may have several lines."""
    table = RichTable(box=_RULE, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for one in columns:
        size: dict[str, Any] = {} if one.is_text else {"width": min(one.width, width)}
        justify: Any = "left" if one.is_left else "right"
        table.add_column(Text(one.heading, overflow="fold"), justify=justify, **size)
    for row in zip(*(one.cells for one in columns), strict=True):
        table.add_row(
            *(_Wrapped(text, one.is_left) for text, one in zip(row, columns, strict=True))
        )
    return drawn(width, table)


@dataclass(frozen=True)
class _Wrapped:
    """A cell for rich, which would cut long names anywhere."""

    text: str
    is_left: bool

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, cell_len(self.text))).with_maximum(options.max_width)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in wrapped(self.text, width):
            space = " " * (width - cell_len(line))
            yield Text(line + space if self.is_left else space + line, justify="left")


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters: cut at spaces, a longer word after commas
    and brackets. Further lines are indented if the width allows it."""
    if cell_len(text) <= width:
        return [text]
    indent = "  " if width > 12 else ""
    breakable = Text(re.sub(r"(?<=[,/(])(?=\S)", _BREAK, on_one_line(text)))
    lines = breakable.wrap(console(width), width - len(indent), overflow="fold")
    first, *rest = (line.plain.replace(_BREAK, "").rstrip() for line in lines)
    return [first, *(indent + line for line in rest)]
