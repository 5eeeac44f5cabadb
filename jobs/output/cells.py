"""Tables for printing: their rows, and the text of a cell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# C0 and C1 but for tab and line feed, marks that turn text round, and lone surrogates.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Table:
    """Rows with the same keys. The first column and those in `left` are left-aligned.

    On a terminal the first `num_keys` columns are repeated in each part of it; columns without
    values are left out unless it `keeps_empty`, and those in `unless_zero` if all values are 0;
    `best`: positions of rows and names of columns whose value is marked.
    """

    rows: Sequence[Mapping[str, Any]]
    left: Sequence[str] = ()
    num_keys: int = 1
    keeps_empty: bool = False
    unless_zero: Sequence[str] = ()
    best: frozenset[tuple[int, str]] = frozenset()


Part = str | Table
"""A part of a command's output: a text or a table, with an empty line between two of them."""


def printable(text: str) -> str:
    """The text with control characters as escapes, such as \\x1b; line ends are line feeds."""
    return CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def counted(number: int, what: str) -> str:
    """A number with its noun: `1 page`, `1234 pages`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def cell(value: Any) -> str:
    """A cell's text: floats with one decimal, `-` for None, others on one line with `|` escaped."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return printable(" ".join(str(value).split())).replace("|", "\\|")
