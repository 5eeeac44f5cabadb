"""Parts as LaTeX: texts as comments, tables with booktabs, every special character escaped, none
scaled. A table that is wider than the text is split; its width follows from those of the font's
characters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jobs.output.cells import Part, Table, on_one_line
from jobs.output.latex_columns import Column, columns_of, total
from jobs.output.latex_text import Printed, escaped

TEXT_WIDTH = 345.0  # points, of the class article with 10 points
# A class with 12 points has a text of 390 and a \small of 10.95 of them: as 345 with 9.69.
_SIZE = 9.69


def latex(parts: Sequence[Part], width: float = TEXT_WIDTH) -> str:
    """Headings and paragraphs as comments, a line each; a float per table, which is not split
    here."""
    return "".join(f"{line}\n" for part in parts for line in _lines(part, width / _SIZE))


def fitted(table: Table, width: float = TEXT_WIDTH) -> list[Table]:
    """The table if it is not wider than a text of `width` points; else a table for each of its
    groups, or several, all with its keys. The first has the caption behind its group, the others
    refer to it."""
    columns = columns_of(table, width / _SIZE)
    if points(table, width) <= width:
        return [table]
    keys, others = columns[: table.num_keys], columns[table.num_keys :]
    by_group: dict[str, list[Column]] = {}
    for column in others:
        by_group.setdefault(table.groups.get(column.name, ""), []).append(column)
    parts = [
        (group, number, block)
        for group, own in by_group.items()
        for number, block in enumerate(_blocks(keys, own, width / _SIZE))
    ]
    return [_part(table, *part, place) for place, part in enumerate(parts)]


def points(table: Table, width: float = TEXT_WIDTH) -> float:
    """The width of a table in points, in a text of `width`."""
    return total(columns_of(table, width / _SIZE)) * _SIZE


def _blocks(keys: list[Column], columns: list[Column], width: float) -> list[list[Column]]:
    blocks: list[list[Column]] = [[]]
    for column in columns:
        if blocks[-1] and total([*keys, *blocks[-1], column]) > width:
            blocks.append([])
        blocks[-1].append(column)
    return [[*keys, *block] for block in blocks]


def _part(table: Table, group: str, number: int, columns: list[Column], place: int) -> Table:
    about = f"{group}, continued" if number else group
    rows = [{column.name: row[column.name] for column in columns} for row in table.rows]
    if place == 0:
        return replace(table, rows=rows, caption=f"{about}: {table.caption}")
    label = f"{table.label}-{group.lower()}{number + 1 if number else ''}"
    return replace(table, rows=rows, caption=about, label=label, part_of=table.label)


def _lines(part: Part, width: float) -> Iterator[str]:
    if not isinstance(part, Table):
        yield f"% {on_one_line(part if isinstance(part, str) else part.text)}"
        return
    columns = columns_of(part, width)
    yield r"\begin{table}"
    yield r"\centering\small\setlength{\tabcolsep}{4pt}"
    if part.caption:
        first = f"; see Table~\\ref{{{part.part_of}}}." if part.part_of else ""
        yield f"\\caption{{{escaped(part.caption)}{first}}}"
        yield f"\\label{{{part.label}}}"
    yield f"\\begin{{tabular}}{{@{{}}{''.join(map(_kind, columns))}@{{}}}}"
    yield r"\toprule"
    yield _row([_heading(column) for column in columns])
    yield r"\midrule"
    for cells in zip(*(column.cells for column in columns), strict=True):
        yield _row([one.tex for one in cells])
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _kind(column: Column) -> str:
    if column.limit is not None:
        return f"p{{{column.limit:.1f}em}}"
    return "l" if column.is_left else "r"


def _heading(column: Column) -> str:
    lines: Sequence[Printed] = column.heading
    if len(lines) == 1:
        return lines[0].tex
    side = "l" if column.is_left else "r"
    texts = r"\\".join(line.tex for line in lines)
    return f"\\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{texts}\\end{{tabular}}"
