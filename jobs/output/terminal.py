"""Parts on a terminal, in tables that rich draws and wraps. Columns without any value are left out,
and the last columns of a table that is too wide; a line below the table names them."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from jobs.output.print_tables import Measured, Part, Table, Verbatim, cell, printable

_LEAST = 40  # characters; narrower terminals get tables of this width
_GAP = 2  # spaces between columns
_SHORT = 8  # characters of a heading that is not wrapped
_TEXT = 24  # characters that a wide column keeps, to stay beside the others
_EMPTY = "Empty in this run, so not shown: {}."
_TOO_WIDE = "Too wide to show: {}; wider terminals and pipes have all."
_RULE = Box("    \n    \n ─  \n    \n    \n    \n    \n    \n")


def fitted_to_terminal(parts: Iterable[Part], width: int) -> str:
    """`width` is in characters."""
    width = max(width, _LEAST)
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Table):
            texts += _table(part, width) if part.rows else ["no rows"]
        elif isinstance(part, Verbatim):
            texts.append(part.text)
        else:
            texts.append(wrapped(part if isinstance(part, str) else part.text, width))
    return "\n\n".join(texts)


def wrapped(text: str, width: int) -> str:
    """Wrap every line at spaces, further lines indented like its first; a word longer than the
    terminal stays whole."""
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * (len(line) - len(line.lstrip(" "))),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in printable(text).splitlines()
    )


@dataclass(frozen=True)
class _Column:
    name: str
    heading: str
    cells: list[str]
    is_left: bool
    width: int

    @classmethod
    def of(cls, table: Table, name: str) -> "_Column":
        """A best value has a mark, other values a space in its place."""
        n = table.shared_n(name)
        heading = cell(name) if n is None else f"{cell(name)} (n={n})"
        values = [row[name] for row in table.rows]
        cells = [cell(value, n) for value in values]
        best = [isinstance(value, Measured) and value.is_best for value in values]
        if any(best):
            marks = ("*" if is_best else " " for is_best in best)
            cells = [text + mark for text, mark in zip(cells, marks, strict=True)]
        words = [heading] if cell_len(heading) <= _SHORT else heading.split()
        width = max([1, *map(cell_len, (*cells, *words))])
        return cls(name, heading, cells, table.is_left(name), width)


def _table(table: Table, width: int) -> Iterator[str]:
    names = table.names() if table.keeps_empty else table.filled()
    columns = [_Column.of(table, name) for name in names]
    shown = list(columns)
    while (
        len(shown) > 1 and sum(min(column.width, _TEXT) + _GAP for column in shown) > width + _GAP
    ):
        shown.pop()
    yield _drawn(shown, width)
    if table.about_best and any(text.endswith("*") for column in shown for text in column.cells):
        yield wrapped(table.about_best, width)
    empty = [name for name in table.names() if name not in names]
    for about, left_out in ((_EMPTY, empty), (_TOO_WIDE, names[len(shown) :])):
        if left_out:
            yield wrapped(about.format(", ".join(left_out)), width)


def _drawn(columns: Sequence[_Column], width: int) -> str:
    """Narrow columns of numbers are never wrapped."""
    table = RichTable(box=_RULE, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    cells: list[list[Text]] = []
    for column in columns:
        fixed = column.width if not column.is_left and column.width <= _TEXT else None
        justify: Literal["left", "right"] = "left" if column.is_left else "right"
        table.add_column(Text(column.heading), justify=justify, overflow="fold", width=fixed)
        texts = column.cells
        if fixed:  # rich would strip the space that replaces a mark
            texts = [" " * (fixed - cell_len(text)) + text for text in texts]
        cells.append([Text(text, justify="left" if fixed else None) for text in texts])
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    # Else rich uses 80 columns where TERM=dumb.
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())
