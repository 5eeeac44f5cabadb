"""Parts as Markdown, rows as CSV in which a spreadsheet finds no formulas, and values as JSON."""

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.cells import cell_len, set_cell_size

from jobs.output.cells import CONTROLS, Heading, Measured, Part, Table, cell, printable


def markdown(parts: Iterable[Part]) -> str:
    """An empty line separates parts; no cell is cut, however long."""
    return "\n\n".join(map(_part, parts))


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}"
    if isinstance(part, Table):
        return f"{part.caption}\n\n{_table(part)}" if part.caption else _table(part)
    return part if isinstance(part, str) else part.text


def _table(table: Table) -> str:
    names = table.names()
    lines = [names, *([row[name] for name in names] for row in table.rows)]
    texts = [[_cell(value, table).replace("|", "\\|") for value in line] for line in lines]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    is_left = [table.is_left(name) for name in names]

    def drawn(line: Sequence[str]) -> str:
        return " | ".join(
            set_cell_size(text, width) if left else " " * (width - cell_len(text)) + text
            for text, width, left in zip(line, widths, is_left, strict=True)
        )

    rule = "|".join("-" * (width + 2) for width in widths)
    head, *body = (f"| {drawn(line)} |" for line in texts)
    return "\n".join([head, f"|{rule}|", *body])


def _cell(value: Any, table: Table) -> str:
    is_bold = table.is_best_bold and isinstance(value, Measured) and value.is_best
    return f"**{cell(value)}**" if is_bold else cell(value)


# These begin a formula in some spreadsheet; the last four are the full-width signs.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV with a header; None is an empty cell. A text that a spreadsheet would take for a
    formula gets an apostrophe before it; control characters are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_csv_cell(column) for column in columns])
    writer.writerows([_csv_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    is_formula = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if is_formula else text


def json_text(content: Any, indent: int | None = None, is_ascii: bool = False) -> str:
    """JSON without NaN; control characters are escapes."""
    text = json.dumps(
        json_value(content), indent=indent, default=str, ensure_ascii=is_ascii, allow_nan=False
    )
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_value(value: Any) -> Any:
    """A value that JSON allows: null for NaN and infinities, numbers for decimals, ISO 8601 for
    times, objects for dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json_value(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime) else value
