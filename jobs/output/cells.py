"""The parts that a command prints, and the texts of a table's cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# C0 and C1 except tab and line feed, marks that reverse text, and lone surrogates.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 1


@dataclass(frozen=True)
class Verbatim:
    """Lines that are printed unchanged, however long."""

    text: str


@dataclass(frozen=True)
class Measured:
    """A cell with a mean over `n` of the `of` answers of its row. `answered` of the n answers have
    no problem, where the others count 0. `small` is printed behind the mean."""

    value: float | None
    n: int
    of: float | None
    is_best: bool = False
    small: str = ""
    answered: int | None = None

    def is_over(self, shared_n: int | None) -> list[str]:
        """What a reader must know of the answers behind the mean: n, unless the row or the column
        (`shared_n`) says it, and how many were answered, unless all were."""
        n = [] if self.n in (self.of, shared_n) else [f"n={self.n}"]
        return [*n, *([] if self.answered in (None, self.n) else [f"{self.answered} answered"])]


@dataclass(frozen=True)
class Table:
    """Rows with the same keys; a cell is a text, a number, a `Measured` or None. The first column
    and those in `left` are left-aligned. A terminal leaves out columns without values, except the
    first `num_keys`, unless the table `keeps_empty`. `about_best` explains marks of best values;
    `caption`, `label` and `is_best_bold` are for LaTeX and Markdown."""

    rows: Sequence[Mapping[str, Any]]
    left: Sequence[str] = ()
    num_keys: int = 1
    keeps_empty: bool = False
    about_best: str = ""
    caption: str = ""
    label: str = ""
    is_best_bold: bool = False

    def names(self) -> list[str]:
        return list(self.rows[0]) if self.rows else ["no rows"]

    def is_left(self, name: str) -> bool:
        return name in self.left or name == self.names()[0]

    def filled(self) -> list[str]:
        """The columns that have a value, and the key columns."""
        names = self.names()
        return names[: self.num_keys] + [
            name
            for name in names[self.num_keys :]
            if any(row[name] not in (None, "", "-") for row in self.rows)
        ]

    def shared_n(self, name: str) -> int | None:
        """The n that all means of a column share; None if they differ or are all complete."""
        cells = [row[name] for row in self.rows if isinstance(row[name], Measured)]
        numbers = {cell.n for cell in cells}
        is_shared = len(numbers) == 1 and any(cell.n != cell.of for cell in cells)
        return numbers.pop() if is_shared else None


Part = Heading | Table | Verbatim | str
"""A part of a command's output, with an empty line before the next; a str is a paragraph."""


def printable(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return CONTROLS.sub(escape, text.replace("\r\n", "\n"))


def counted(number: int, what: str) -> str:
    """A number with its noun: `1 page`, `1234 pages`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def on_one_line(text: str) -> str:
    """Collapse whitespace and escape control characters."""
    return printable(" ".join(text.split()))


def cell(value: Any, shared_n: int | None = None) -> str:
    """A cell's text, on one line: floats with one decimal, `-` for None; a mean is followed by the
    numbers that it is over (`Measured.is_over`), without `shared_n`, which the heading has."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    if not isinstance(value, Measured):
        return on_one_line(str(value))
    shown = f"{cell(value.value)} {value.small}".rstrip()
    over = ", ".join(value.is_over(shared_n))
    return f"{shown} ({over})" if over else shown
