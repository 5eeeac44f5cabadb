"""The columns of a table in LaTeX: headings and cells with their widths in ems."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.output.cells import Marks, Measured, Table, cell
from jobs.output.latex_text import Printed, ems, escaped

GAP = 0.83  # between columns: twice 4 points
_BOLD, _SMALL = 1.16, 0.88  # widths of bold digits, and of \scriptsize beside \small
_MOST_KEYS = 0.55  # of the text's width, for columns of texts that stand in every part
_STAR = Printed("$^{*}$", 0.45)
_SPACE = Printed(" ", 0.35)
_GAPS = re.compile(r"(?<=\S\S) (?=\S\S)")  # where a heading may be cut: "# LU" stays whole
_BREAKS = re.compile(r"(?<=[,/(=_-])")


@dataclass(frozen=True)
class Column:
    """One column. `limit`: the width to which its texts are wrapped; None: as wide as they are."""

    name: str
    heading: Sequence[Printed]  # its lines
    cells: Sequence[Printed]
    is_left: bool
    limit: float | None = None

    @property
    def width(self) -> float:
        return self.limit or max(one.width for one in (*self.heading, *self.cells))


def columns_of(table: Table, width: float) -> list[Column]:
    """The columns that have a value. Keys of texts that together take over half of the `width` are
    wrapped."""
    found = [_column(table, name) for name in table.filled()]
    keys = [column for column in found[: table.num_keys] if column.is_left]
    most = _MOST_KEYS * width
    if sum(column.width for column in keys) <= most:
        return found
    limits = {column.name: min(column.width, most / len(keys)) for column in keys}
    return [
        _wrapped(table, column, limits[column.name]) if column.name in limits else column
        for column in found
    ]


def total(columns: Sequence[Column]) -> float:
    """The width of a table of these columns."""
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def _column(table: Table, name: str) -> Column:
    n = table.shared_n(name)
    values = [row[name] for row in table.rows]
    has_best = any(isinstance(value, Measured) and value.is_best for value in values)
    marks = table.marks if has_best else "none"
    cells = [_cell(value, n, marks) for value in values]
    return Column(name, _heading(name, n, cells), cells, table.is_left(name))


def _heading(name: str, n: int | None, cells: Sequence[Printed]) -> list[Printed]:
    """Its lines: cut at spaces where it would widen the column."""
    texts = _GAPS.split(" ".join(name.split()))
    words = [Printed("$n$", 0.65)] if name == "n" else [Printed.of(text) for text in texts]
    words += [] if n is None else [_over(n)]
    most = max(one.width for one in (*cells, *words))
    lines: list[Printed] = []
    for word in words:
        longer = lines[-1] + _SPACE + word if lines else word
        lines = [*lines[:-1], longer] if longer.width <= most else [*lines, word]
    return lines


def _over(n: int) -> Printed:
    return Printed(f"($n$={n})", ems(f"(n={n})") + 0.1)


def _cell(value: Any, shared_n: int | None, marks: Marks) -> Printed:
    """A best value has the mark, what is small is in brackets."""
    if not isinstance(value, Measured) or value.value is None:
        return Printed("--", ems("0")) if cell(value) == "-" else Printed.of(cell(value))
    found = Printed.of(cell(value.value))
    if marks == "bold" and value.is_best:
        found = Printed(f"\\textbf{{{found.tex}}}", _BOLD * found.width)
    if marks == "stars":
        found += _STAR if value.is_best else Printed(f"\\phantom{{{_STAR.tex}}}", _STAR.width)
    if over := ", ".join(value.is_over(shared_n)):
        found += _SPACE + Printed(f"({over.replace('n=', '$n$=')})", ems(f"({over})") + 0.1)
    if value.small:
        found += _SPACE + Printed(f"{{\\scriptsize{value.small}}}", _SMALL * ems(value.small))
    return found


def _wrapped(table: Table, column: Column, limit: float) -> Column:
    texts = [cell(row[column.name]) for row in table.rows]
    cells = [Printed(rf"\raggedright {_breakable(text, limit)}", limit) for text in texts]
    return Column(column.name, column.heading, cells, True, limit)


def _breakable(text: str, limit: float) -> str:
    """The text with places where a word that is too long may be broken."""
    return " ".join(
        escaped(word)
        if ems(word) <= limit
        else r"\allowbreak{}".join(escaped(piece) for piece in _pieces(word, limit))
        for word in text.split()
    )


def _pieces(word: str, limit: float) -> Sequence[str]:
    pieces = _BREAKS.split(word)
    return pieces if max(map(ems, pieces)) <= limit else word
