"""Tables that fit the width of a terminal: no cell is cut, no line is longer than the terminal.

Columns without any value are left out and named below. Columns that do not fit beside the first
ones move to further tables under the first, which begin with the same columns. Long names are
wrapped at commas and spaces, long texts at spaces.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

from jobs.output.cells import Part, Table, cell, printable

LEAST = 40  # characters; narrower terminals get tables of this width
_GAP = 2  # spaces between columns
_KEY = 32  # characters that a single first column may take, or a third of the terminal
_SHORT = 8  # characters of a heading that is not wrapped
_TEXT = 24  # characters that a column of texts keeps, to stay beside the others
_LEFT_OUT = "Empty in this run, so not shown: {}."


@dataclass(frozen=True)
class _Column:
    heading: str
    cells: list[str]
    is_left: bool
    is_flexible: bool  # texts, which may be wrapped
    width: int


def fitted_to_terminal(parts: Sequence[Part], width: int) -> str:
    """Texts and tables for a terminal of `width` characters."""
    width = max(width, LEAST)
    shown = [_table(part, width) if isinstance(part, Table) else _text(part, width)
             for part in parts]  # fmt: skip
    return "\n\n".join(shown)


def _text(text: str, width: int) -> str:
    """Every line wrapped at spaces; a word longer than the terminal stays whole."""
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in printable(text).splitlines()
    )


def _table(table: Table, width: int) -> str:
    if not table.rows:
        return "no rows"
    names = [name for name in table.rows[0]
             if name not in table.unless_zero or any(row[name] for row in table.rows)]  # fmt: skip
    empty = [] if table.keeps_empty else [
        name for name in names[table.num_keys :]
        if all(row[name] in (None, "", "-") for row in table.rows)
    ]  # fmt: skip
    columns = [_column(table, name, place) for place, name in enumerate(names)
               if name not in empty]  # fmt: skip
    keys, others = columns[: table.num_keys], columns[table.num_keys :]
    keys = _narrowed(keys, width)
    blocks = [_block([*keys, *own]) for own in _distributed(keys, others, width)]
    notes = [_LEFT_OUT.format(", ".join(empty))] if empty else []
    return "\n\n".join([*blocks, *(_text(note, width) for note in notes)])


def _column(table: Table, name: str, place: int) -> _Column:
    """One column; a best value has a mark, and the others a space in its place."""
    cells = [cell(row[name]).replace("\\|", "|") for row in table.rows]
    marked = {row for row, column in table.best if column == name}
    if marked:
        cells = [f"{text}{'*' if row in marked else ' '}" for row, text in enumerate(cells)]
    is_left = place == 0 or name in table.left
    longest = max(map(cell_len, cells))
    heading = cell(name).replace("\\|", "|")
    whole = cell_len(heading)
    words = max((cell_len(word) for word in heading.split()), default=1)
    words = whole if whole <= _SHORT else words
    is_text = is_left or any(" " in text.strip() for text in cells)
    return _Column(heading, cells, is_left, is_text, max(longest, words, 1))


def _narrowed(keys: Sequence[_Column], width: int) -> list[_Column]:
    """The first columns, with texts wrapped so that the others fit beside them. Several share two
    thirds of the terminal; none gets more than a single one would."""
    most = max(_KEY, width // 3)
    if len(keys) > 1:
        fixed = sum(key.width for key in keys if not key.is_flexible)
        texts = [min(key.width, most) for key in keys if key.is_flexible]
        whole = max(2 * width // 3 - fixed - _GAP * len(keys), len(texts))
        shares = iter(_shares(texts, whole))
        return [_at_most(key, next(shares)) if key.is_flexible else key for key in keys]
    return [_at_most(key, most) if key.is_flexible else key for key in keys]


def _at_most(column: _Column, most: int) -> _Column:
    """The column with its cells wrapped to `most` characters, and no wider than they are then."""
    if column.width <= most:
        return column
    lines = [*_heading(column.heading, most)]
    lines += [line for text in column.cells for line in wrapped(text, most)]
    return replace(column, width=max(map(cell_len, lines)))


def _distributed(
    keys: Sequence[_Column], others: Sequence[_Column], width: int
) -> list[list[_Column]]:
    """The columns in as many tables as they need; in one, if wrapping texts is enough for that."""
    left = width - sum(key.width + _GAP for key in keys)
    fixed = sum(one.width + _GAP for one in others if not one.is_flexible)
    texts = [one for one in others if one.is_flexible]
    rest = left - fixed - _GAP * len(texts) + _GAP
    if texts and rest >= _TEXT * len(texts):
        shares = _shares([one.width for one in texts], rest)
        narrow = iter(shares)
        return [[_at_most(one, next(narrow)) if one.is_flexible else one for one in others]]
    found: list[list[_Column]] = [[]]
    taken = 0
    for one in others:
        one = _at_most(one, max(left, 1))
        if found[-1] and taken + one.width > left:
            found.append([])
            taken = 0
        found[-1].append(one)
        taken += one.width + _GAP
    return found


def _shares(widths: Sequence[int], whole: int) -> list[int]:
    """The characters for each of several columns, of `whole` together: none gets more than it
    needs."""
    shares, left = [0] * len(widths), whole
    for rank, place in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        shares[place] = min(widths[place], left // (len(widths) - rank))
        left -= shares[place]
    return shares


def _block(columns: Sequence[_Column]) -> str:
    """One table: headings, a rule, rows whose cells may have several lines."""
    headings = [_heading(one.heading, one.width) for one in columns]
    height = max(map(len, headings))
    lines = _lines(columns, [[""] * (height - len(lines)) + lines for lines in headings])
    lines.append((" " * _GAP).join("─" * one.width for one in columns))
    for row in range(len(columns[0].cells)):
        lines += _lines(columns, [wrapped(one.cells[row], one.width) for one in columns])
    return "\n".join(lines)


def _heading(text: str, width: int) -> list[str]:
    """The lines of a heading, cut at spaces if all words fit."""
    if max(map(cell_len, text.split()), default=0) > width:
        return wrapped(text, width)
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _lines(columns: Sequence[_Column], cells: Sequence[list[str]]) -> list[str]:
    height = max(map(len, cells))
    return [
        (" " * _GAP).join(
            _set(lines[row] if row < len(lines) else "", one)
            for one, lines in zip(columns, cells, strict=True)
        ).rstrip()
        for row in range(height)
    ]  # fmt: skip


def _set(text: str, column: _Column) -> str:
    if column.is_left:
        return set_cell_size(text, column.width)
    return " " * (column.width - cell_len(text)) + text


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters: cut at spaces, a longer word after commas,
    brackets and underscores. Further lines are indented if the width allows it."""
    if cell_len(text) <= width:
        return [text]
    lines, line = list[str](), ""
    indent = "  " if width > 12 else ""
    for word in re.findall(r"\s+|\S+", text):
        for part in _breakable(word, width - len(indent)):
            if line.strip() and cell_len(line) + cell_len(part.rstrip()) > width:
                lines.append(line.rstrip())
                line = indent
            line += part if part.strip() or line.strip() else ""
            while cell_len(line.rstrip()) > width:
                head = _fitting(line, width)
                lines.append(head)
                line = indent + line[len(head) :]
    return [*lines, line.rstrip()] if line.strip() else lines


def _breakable(word: str, width: int) -> list[str]:
    """The word if it fits, else its parts: cut after commas and brackets, then underscores."""
    parts = [word]
    for ends in (",/(", "_-"):
        parts = [piece for part in parts for piece in (
            [part] if cell_len(part) <= width
            else re.findall(f"[^{ends}]*[{ends}]+|[^{ends}]+", part))]  # fmt: skip
    return parts


def _fitting(text: str, width: int) -> str:
    """The first characters of a text that fit; wide ones take two columns."""
    end = min(len(text), width)
    while cell_len(text[:end]) > width:
        end -= 1
    return text[: max(end, 1)]
