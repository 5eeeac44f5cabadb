"""Tables on a PDF's pages: those with rules around their cells, which pdfplumber finds, and rows of
words that stand in columns."""

import io
import re
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from stages.extract.extracted import EXTRA, UnreadableError
from stages.extract.pdf_lines import Line, Word

Box = tuple[float, float, float, float]
"""Left, bottom, right, top, in points; y grows upwards."""
Span = tuple[float, float]
"""Left and right of a cell or a column, in points."""
Grid = list[list[Box | None]]
"""The cells of a table's rows; None where a cell spans several."""
_LEAST_FILLED = 0.5  # of the cells of a table
_STEP = 3.0  # of a line's height: rows of a table are no further apart
_WRAPPED = 0.9  # of the step between rows: a line that is nearer goes on with cells of its row
# What pdfminer raises where a malformed file has something of another type, or too deep.
_MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
              RecursionError, TypeError, ValueError)  # fmt: skip
_SECONDS, _PAGE = 120.0, 20.0  # of pdfplumber over a file, of the 600 that it has, and a page
_MARKER = re.compile(r"(?:\W|\(?\w{1,3}[.):])\Z")


class Table(NamedTuple):
    """Rows of cells, all of one length; the first one is the head."""

    rows: list[list[str]]


def ruled_grids(content: bytes, pages: Collection[int]) -> dict[int, list[Grid]]:
    """The cells of tables with rules, of those pages of a PDF, by page; without pages that take
    pdfplumber too long, and without those from the first on that pdfminer, on which it is built,
    cannot read although PDFium can. Raises UnreadableError where pdfplumber is not installed."""
    if not pages:
        return {}
    try:
        import pdfplumber
        from pdfminer.psexceptions import PSException
        from pdfplumber.utils.exceptions import MalformedPDFException, PdfminerException
    except ImportError:
        raise UnreadableError(f"a PDF with tables needs pdfplumber; {EXTRA}") from None
    found: dict[int, list[Grid]] = {}
    end = time.monotonic() + _SECONDS
    try:
        with pdfplumber.open(io.BytesIO(content)) as document:
            for index in pages:
                page = document.pages[index]
                with suppress(_TooSlow), _stopped_after(min(_PAGE, end - time.monotonic())):
                    tables = page.find_tables()
                    found[index] = [_grid(table, float(page.height)) for table in tables]
                page.close()
    except (PSException, PdfminerException, MalformedPDFException, *_MALFORMED):
        return found
    return found


class _TooSlow(BaseException):
    """Time is over. As KeyboardInterrupt no Exception, which a library may catch."""


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise _TooSlow in the block after so many seconds, at once if there are none. For the main
    thread alone, which signals are sent to, and for Python code, which they interrupt."""
    if seconds <= 0:
        raise _TooSlow

    def stop(*_: object) -> None:
        raise _TooSlow

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _grid(table: Any, height: float) -> Grid:
    """The cells of a table of pdfplumber, whose y grows downwards."""
    return [
        [cell and (cell[0], height - cell[3], cell[2], height - cell[1]) for cell in row.cells]
        for row in table.rows
    ]


def with_tables(lines: Sequence[Line], grids: Sequence[Grid]) -> list[Line | Table]:
    """The lines in order, tables in the place of their first ones."""
    found: list[Line | Table] = list(lines)
    for grid in grids:
        found = _with_ruled(found, grid)
    return _with_aligned(found)


def _with_ruled(items: Sequence[Line | Table], grid: Grid) -> list[Line | Table]:
    lines = [item for item in items if isinstance(item, Line)]
    rows = [[_text(_inside(lines, box)) if box else "" for box in row] for row in grid]
    if not _is_table(rows):
        return list(items)
    found: list[Line | Table] = []
    boxes = [box for row in grid for box in row if box]
    table: Table | None = Table([row for row in rows if any(row)])
    for item in items:
        outside = item if isinstance(item, Table) else _outside(item, boxes)
        if table and outside is not item:
            found.append(table)
            table = None
        if outside:
            found.append(outside)
    return found


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """True if it has several rows and columns, and words in most cells."""
    cells = [cell for row in rows for cell in row]
    is_wide = sum(any(row[column] for row in rows) for column in range(len(rows[0]))) > 1
    filled = sum(map(bool, cells))
    return len(rows) > 1 and is_wide and filled >= _LEAST_FILLED * len(cells)


def _inside(lines: Sequence[Line], box: Box) -> list[Line]:
    kept = [line._replace(words=tuple(word for word in line.words if _is_in(line, word, [box])))
            for line in lines]  # fmt: skip
    return [line for line in kept if line.words]


def _outside(line: Line, boxes: Sequence[Box]) -> Line | None:
    """The line without the words in the boxes; itself where it has none there."""
    words = tuple(word for word in line.words if not _is_in(line, word, boxes))
    if len(words) == len(line.words):
        return line
    return line._replace(words=words) if words else None


def _is_in(line: Line, word: Word, boxes: Sequence[Box]) -> bool:
    x, y = (word.left + word.right) / 2, line.bottom + line.height / 2
    return any(left <= x <= right and bottom <= y <= top for left, bottom, right, top in boxes)


def _text(lines: Sequence[Line]) -> str:
    return "".join(line.text + ("" if line.is_cut else " ") for line in lines).strip()


def _with_aligned(items: Sequence[Line | Table]) -> list[Line | Table]:
    found: list[Line | Table] = []
    index = 0
    while index < len(items):
        run = list(_run(items, index))
        made = ((_aligned(run[:length]), length) for length in reversed(_lengths(run)))
        table, length = next((pair for pair in made if pair[0]), (None, 1))
        found.append(table or items[index])
        index += length
    return found


def _lengths(lines: Sequence[Line]) -> list[int]:
    """The numbers of first lines that may be a table: most of these have as many cells as there are
    columns. One pass over the lines, as every line may be the first one."""
    found: list[int] = []
    times = Counter[int]()
    columns: dict[int, list[Span]] = {}  # of the lines with so many cells
    is_list = True
    for length, line in enumerate(lines, 1):
        cells = line.cells()
        times[len(cells)] += 1
        columns[len(cells)] = _columns([*columns.get(len(cells), ()), *map(_span, cells)])
        usual = times.most_common(1)[0][0]
        is_list = is_list and len(cells) > 1 and bool(_MARKER.match(_words(cells[0])))
        if length > 2 and not is_list and 2 <= len(columns[usual]) == usual:
            found.append(length)
    return found


def _run(items: Sequence[Line | Table], first: int) -> Iterator[Line]:
    """The lines from the first one that may be a table's: in several cells, or beyond its first
    cell."""
    before: Line | None = None
    for item in items[first:]:
        if not isinstance(item, Line) or not item.height:
            return
        cells = item.cells()
        if before is None:
            edge = cells[0][-1].right
        elif not 0 < before.bottom - item.bottom < _STEP * item.height:
            return
        if len(cells) < 2 and (before is None or item.left < edge):
            return
        before = item
        yield item


def _aligned(lines: Sequence[Line]) -> Table | None:
    """Lines of one of those lengths as a table, if all of them stand in its columns."""
    usual = Counter(len(line.cells()) for line in lines).most_common(1)[0][0]
    rows_of_all = [line.cells() for line in lines if len(line.cells()) == usual]
    columns = _columns(_span(cell) for cells in rows_of_all for cell in cells)
    if not all(_fits(line, columns) for line in lines):
        return None
    step = median(above.bottom - line.bottom for above, line in pairwise(lines))
    rows: list[list[str]] = []
    for index, line in enumerate(lines):
        row = [""] * usual
        for cell in line.cells():
            place = _column(columns, cell)
            row[place] = f"{row[place]} {_words(cell)}".strip()
        if rows and not row[0] and lines[index - 1].bottom - line.bottom < _WRAPPED * step:
            rows[-1] = [
                f"{above} {below}".strip() for above, below in zip(rows[-1], row, strict=True)
            ]
        else:
            rows.append(row)
    is_list = all(_MARKER.match(row[0]) for row in rows if row[0])
    return Table(rows) if len(rows) > 2 and not is_list and _is_table(rows) else None


def _columns(spans: Iterable[Span]) -> list[Span]:
    """From where to where cells go, those that overlap as one."""
    found: list[Span] = []
    for left, right in sorted(spans):
        if found and left < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], right))
        else:
            found.append((left, right))
    return found


def _span(cell: Sequence[Word]) -> Span:
    return cell[0].left, cell[-1].right


def _words(cell: Sequence[Word]) -> str:
    return " ".join(word.text for word in cell)


def _fits(line: Line, columns: Sequence[Span]) -> bool:
    """True if a line of a single cell is no wider than its column."""
    cells = line.cells()
    left, right = columns[_column(columns, cells[0])]
    return len(cells) > 1 or (left - line.height < line.left and line.right < right + line.height)


def _column(columns: Sequence[Span], cell: Sequence[Word]) -> int:
    """The column that a cell overlaps most."""
    left, right = _span(cell)
    shared = [min(right, end) - max(left, begin) for begin, end in columns]
    return shared.index(max(shared))
