"""Print tables and JSON on standard output. Tables are Markdown, so that they can be pasted.

Control characters, which a corpus may hold and a terminal would obey, are printed as escapes.
"""

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_WIDE = 10_000_000  # characters: no cell is cut or wrapped, however long


# C0 and C1 but for tab and line feed, marks that turn text round, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def print_line(text: str = "") -> None:
    sys.stdout.write(printable(text) + "\n")


def printable(text: str) -> str:
    """The text with control characters as escapes, such as \\x1b; line ends are line feeds."""
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def print_json(content: Any) -> None:
    """Print as JSON; what a terminal would obey stands as \\u escapes, so values stay exact."""
    text = json.dumps(plain(content), indent=2, default=str, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def plain(value: Any) -> Any:
    """A value as JSON has it: null for NaN and infinities, which JSON lacks, numbers for decimals,
    ISO 8601 for times."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime) else value


def print_table(
    rows: Sequence[Mapping[str, Any]], left: Sequence[str] = (), is_exact: bool = False
) -> None:
    """Print rows with the same keys; the first column and those in `left` are left-aligned.
    `is_exact`: fractions with all their digits, not one decimal."""
    exact = [{k: repr(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    print_line(markdown(exact if is_exact else rows, left))


def markdown(rows: Sequence[Mapping[str, Any]], left: Sequence[str] = ()) -> str:
    """Rows with the same keys as a Markdown table; see `print_table`."""
    table = Table(box=box.MARKDOWN)
    for position, name in enumerate(rows[0] if rows else ["no rows"]):
        justify: Any = "left" if position == 0 or name in left else "right"
        table.add_column(cell(name), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    console = Console(width=_WIDE, color_system=None, emoji=False)
    with console.capture() as capture:
        console.print(table, markup=False)
    return "\n".join(line.strip() for line in capture.get().splitlines() if line.strip())


def cell(value: Any) -> str:
    """A cell's text: floats with one decimal, `-` for null, others on one line with `|` escaped."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return printable(" ".join(str(value).split())).replace("|", "\\|")
