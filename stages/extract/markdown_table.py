"""Tables as Markdown: a line per row, the first one as the head."""

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, of one cell or more each, filled up to one length. Cells become one line."""
    width = max(map(len, rows))
    lines = ["| " + " | ".join(map(_cell, [*row, *[""] * (width - len(row))])) + " |"
             for row in rows]  # fmt: skip
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
