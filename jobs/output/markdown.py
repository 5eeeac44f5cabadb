"""Parts as Markdown."""

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len, set_cell_size

from jobs.output.cells import Heading, Marks, Measured, Part, Table, cell


def markdown(parts: Iterable[Part]) -> str:
    """An empty line separates parts; no cell is cut, however long."""
    return "\n\n".join(_part(part) for part in parts)


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}"
    if isinstance(part, Table):
        return f"{part.caption}\n\n{_table(part)}" if part.caption else _table(part)
    return part if isinstance(part, str) else part.text


def _table(table: Table) -> str:
    names = table.names()
    lines = [names, *([_cell(row[name], table.marks) for name in names] for row in table.rows)]
    texts = [[cell(text).replace("|", "\\|") for text in line] for line in lines]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    is_left = [table.is_left(name) for name in names]
    drawn = [
        " | ".join(_aligned(*one) for one in zip(line, widths, is_left, strict=True))
        for line in texts
    ]
    rule = "|".join("-" * (width + 2) for width in widths)
    head, *body = (f"| {line} |" for line in drawn)
    return "\n".join([head, f"|{rule}|", *body])


def _cell(value: Any, marks: Marks) -> str:
    if marks == "none" or not (isinstance(value, Measured) and value.is_best):
        return cell(value)
    text = cell(value)
    return f"**{text}**" if marks == "bold" else f"{text}\\*"


def _aligned(text: str, width: int, is_left: bool) -> str:
    return set_cell_size(text, width) if is_left else " " * (width - cell_len(text)) + text
