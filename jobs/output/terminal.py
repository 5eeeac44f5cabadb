"""Parts on a terminal, in tables that rich draws and wraps. Columns without any value are left out,
and the last columns of a table that is too wide; a line below the table names them."""

import textwrap
from collections.abc import Iterable, Iterator

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from jobs.output.print_tables import Measured, Part, Table, Verbatim, cell, printable

_GAP = 2  # spaces between columns
_SHORT = 8  # characters of a heading that is not wrapped
_TEXT = 24  # characters that a wide column keeps, to stay beside the others
_EMPTY = "Empty in this run, so not shown: {}."
_TOO_WIDE = "Too wide to show: {}; wider terminals and pipes have all."
_RULE = Box("    \n    \n ─  \n    \n    \n    \n    \n    \n")


def fitted_to_terminal(parts: Iterable[Part], width: int) -> str:
    """`width` is in characters."""
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


def _table(table: Table, width: int) -> Iterator[str]:
    """Narrow columns of numbers are never wrapped; best values have a mark."""
    names = table.names() if table.keeps_empty else table.filled()
    drawn = RichTable(box=_RULE, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    columns: list[list[Text]] = []
    room, has_marks = width + _GAP, False
    for name in names:
        n, is_left = table.shared_n(name), table.is_left(name)
        heading = cell(name) if n is None else f"{cell(name)} (n={n})"
        values = [row[name] for row in table.rows]
        best = [isinstance(value, Measured) and value.is_best for value in values]
        cells = [
            "*" * is_best + cell(value, n) for value, is_best in zip(values, best, strict=True)
        ]
        words = [heading] if cell_len(heading) <= _SHORT else heading.split()
        least = max([1, *map(cell_len, (*cells, *words))])
        room -= min(least, _TEXT) + _GAP
        if room < 0 and columns:
            break
        is_fixed = not is_left and least <= _TEXT
        drawn.add_column(
            Text(heading),
            justify="left" if is_left else "right",
            overflow="fold",
            width=least if is_fixed else None,
        )
        columns.append([*map(Text, cells)])
        has_marks |= any(best)
    for row in zip(*columns, strict=True):
        drawn.add_row(*row)
    # Else rich uses 80 columns where TERM=dumb.
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(drawn)
    yield "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())
    if has_marks and table.about_best:
        yield wrapped(table.about_best, width)
    empty = [name for name in table.names() if name not in names]
    for about, left_out in ((_EMPTY, empty), (_TOO_WIDE, names[len(columns) :])):
        if left_out:
            yield wrapped(about.format(", ".join(left_out)), width)
