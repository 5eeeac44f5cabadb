"""CSV in which a spreadsheet finds no formulas."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.output.cells import printable

# These begin a formula in some spreadsheet; the last four are the full-width signs.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV with a header; None is an empty cell. A text that a spreadsheet would take for a
    formula gets an apostrophe before it; control characters are escaped."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([_cell(column) for column in columns])
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return made.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    is_formula = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if is_formula else text
