"""Tables as Markdown: a line per row, the first one as the head."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_MOST_SPANNED = 100  # rows or columns


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, of one cell or more each, filled up to one length. Cells become one line."""
    width = max(map(len, rows))
    lines = ["| " + " | ".join(map(_cell, [*row, *[""] * (width - len(row))])) + " |"
             for row in rows]  # fmt: skip
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


@dataclass
class SpannedCells:
    """The cells of an HTML table row by row; one that spans several is followed by empty ones."""

    rows: list[list[str]] = field(default_factory=list)
    _until: dict[int, int] = field(default_factory=dict)  # column: the row that a cell goes up to

    def begin_row(self) -> None:
        self.rows.append([])

    def add(self, text: str, num_columns: int = 1, num_rows: int = 1) -> None:
        """Add a cell to the latest row, in the next column that no cell above spans."""
        if not self.rows:
            self.begin_row()
        row = self.rows[-1]
        while self._until.get(len(row), 0) >= len(self.rows):
            row.append("")
        columns = range(len(row), len(row) + min(max(num_columns, 1), _MOST_SPANNED))
        until = len(self.rows) - 1 + min(num_rows, _MOST_SPANNED)
        self._until |= dict.fromkeys(columns, until)
        row += [text, *[""] * (len(columns) - 1)]
