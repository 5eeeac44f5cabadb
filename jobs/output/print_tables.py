"""Print tables and JSON on standard output. Tables are Markdown, so that they can be pasted; on a
terminal they are fitted to it (terminal.py), unless whole Markdown is asked for.

Control characters, which a corpus may hold and a terminal would obey, are printed as escapes.
"""

import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as MarkdownTable

from jobs.output.cells import CONTROLS, Part, Table, cell, printable
from jobs.output.terminal import fitted_to_terminal

_WIDE = 10_000_000  # characters: no cell is cut or wrapped, however long


def print_line(text: str = "") -> None:
    sys.stdout.write(printable(text) + "\n")


def print_json(content: Any) -> None:
    """Print as JSON; characters that a terminal would obey are \\u escapes, so values stay
    exact."""
    sys.stdout.write(json_text(content, indent=2) + "\n")


def json_text(content: Any, indent: int | None = None) -> str:
    """The JSON text that `print_json` prints."""
    text = json.dumps(
        json_value(content), indent=indent, default=str, ensure_ascii=False, allow_nan=False
    )
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_value(value: Any) -> Any:
    """A value as JSON allows it: null for NaN and infinities, numbers for decimals, ISO 8601 for
    times."""
    if isinstance(value, Mapping):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime) else value


def on_terminal(whole: bool) -> bool:
    """True if tables are fitted to a terminal: if there is one, unless `whole` is asked for."""
    return sys.stdout.isatty() and not whole


def print_parts(parts: Sequence[Part], whole: bool = False) -> None:
    """Print texts and tables: as Markdown, or fitted to a terminal unless `whole`."""
    if on_terminal(whole):
        print_line(fitted_to_terminal(parts, shutil.get_terminal_size().columns))
    else:
        print_line(as_markdown(parts))


def as_markdown(parts: Sequence[Part]) -> str:
    return "\n\n".join(
        markdown(part.rows, part.left) if isinstance(part, Table) else part for part in parts
    )


def print_table(
    rows: Sequence[Mapping[str, Any]],
    left: Sequence[str] = (),
    whole: bool = False,
) -> None:
    """Print a single table."""
    print_parts([Table(rows, left)], whole)


def print_rows(rows: Sequence[Mapping[str, Any]], whole: bool = False) -> None:
    """Print the rows of a query: all columns, and fractions with all their digits."""
    exact = [{k: repr(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    print_parts([Table(exact, keeps_empty=True)], whole)


def markdown(rows: Sequence[Mapping[str, Any]], left: Sequence[str] = ()) -> str:
    """Rows with the same keys as a Markdown table; see `Table`."""
    table = MarkdownTable(box=box.MARKDOWN)
    for position, name in enumerate(rows[0] if rows else ["no rows"]):
        justify: Any = "left" if position == 0 or name in left else "right"
        table.add_column(cell(name), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    console = Console(  # a terminal with TERM=dumb would be 80 columns wide, whatever the width
        width=_WIDE, color_system=None, emoji=False, force_terminal=False
    )
    with console.capture() as capture:
        console.print(table, markup=False)
    return "\n".join(line.strip() for line in capture.get().splitlines() if line.strip())
