"""The parts that a command prints, as Markdown or fitted to a terminal, without characters that a
terminal would obey; rows as CSV, and values as JSON."""

import csv
import dataclasses
import io
import json
import math
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.cells import cell_len, set_cell_size

from pipeline.core.errors import LeftOutWarning

STANDARD_OUTPUT = "-"
_MOST_LINES = 20
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

    def is_over(self, shared_n: int | None = None) -> list[str]:
        """What a reader must know of the answers behind the mean: n, unless the row or the column
        (`shared_n`) says it, and how many were answered, unless all were."""
        n = [] if self.n in (self.of, shared_n) else [f"n={self.n}"]
        return [*n, *([] if self.answered in (None, self.n) else [f"{self.answered} answered"])]


@dataclass(frozen=True)
class Table:
    """Rows with the same keys; a cell is a text, a number, a `Measured` or None. The first column
    and those in `left` are left-aligned. A terminal leaves out columns without values, unless the
    table `keeps_empty`. `about_best` explains marks of best values, which Markdown prints only if
    `is_best_bold`."""

    rows: Sequence[Mapping[str, Any]]
    left: Sequence[str] = ()
    keeps_empty: bool = False
    about_best: str = ""
    is_best_bold: bool = False

    def names(self) -> list[str]:
        return list(self.rows[0]) if self.rows else ["no rows"]

    def is_left(self, name: str) -> bool:
        return name in self.left or name == self.names()[0]

    def filled(self) -> list[str]:
        """The first column, and those that have a value."""
        first, *names = self.names()
        empty = (None, "", "-")
        return [first, *(n for n in names if any(row[n] not in empty for row in self.rows))]

    def shared_n(self, name: str) -> int | None:
        """The n that all means of a column share; None if they differ or are all complete."""
        means = [row[name] for row in self.rows if isinstance(row[name], Measured)]
        numbers = {mean.n for mean in means if any(mean.n != mean.of for mean in means)}
        return numbers.pop() if len(numbers) == 1 else None


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
    numbers that it is over, without `shared_n`, which the heading has."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    if not isinstance(value, Measured):
        return on_one_line(str(value))
    shown = f"{cell(value.value)} {value.small}".rstrip()
    over = ", ".join(value.is_over(shared_n))
    return f"{shown} ({over})" if over else shown


def print_line(text: str = "") -> None:
    sys.stdout.write(printable(text) + "\n")


def print_json(content: Any) -> None:
    print_exact(json_text(content, indent=2) + "\n")


def print_exact(text: str) -> None:
    """Print a text for other programs, which read UTF-8 whatever the terminal's encoding is."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


def print_found(result: Any, parts: Callable[[Any], Iterable[Part]], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print_parts(parts(result))


def print_parts(parts: Iterable[Part]) -> None:
    """Print as Markdown, or fitted to a terminal."""
    if sys.stdout.isatty():
        from jobs.output.terminal import fitted_to_terminal  # here: rich takes a moment

        print_line(fitted_to_terminal(parts, shutil.get_terminal_size().columns))
    else:
        print_line(markdown(parts))


def exact_rows(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The rows of a query: all columns, and fractions with all their digits."""
    exact = [{k: repr(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    return [Table(exact, keeps_empty=True)]


@contextmanager
def warn_in_lines(warn: Callable[[str], None]) -> Iterator[None]:
    """Give `warn` a line per LeftOutWarning inside the context, up to 20."""
    lines: set[str] = set()
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LeftOutWarning):
                show_other(message, category, *where, **more)
                return
            line = f"gistmill: left out {' '.join(str(message).split())}"
            if line not in lines and len(lines) < _MOST_LINES:
                warn(line)
            lines.add(line)

        warnings.simplefilter("always", LeftOutWarning)
        warnings.showwarning = show
        yield
    if (rest := len(lines) - _MOST_LINES) > 0:
        warn(f"gistmill: left out {rest} more files; gistmill sql 'from left_out' lists them")


def warn_incomplete(run: str, inputs: Mapping[str, int], warn: Callable[[str], None]) -> None:
    """Give `warn` a line if some of the run's `inputs` are not done."""
    if inputs["not_done"]:
        warn(
            f"INCOMPLETE: {inputs['not_done']} of {inputs['planned']} inputs of run={run} are not "
            "done, and not in what is exported; the same gistmill run goes on with them"
        )


def markdown(parts: Iterable[Part]) -> str:
    """An empty line separates parts; no cell is cut, however long."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Heading):
            texts.append(f"{'#' * part.level} {part.text}")
        elif isinstance(part, Table):
            texts.append(_table(part))
        else:
            texts.append(part if isinstance(part, str) else part.text)
    return "\n\n".join(texts)


def _table(table: Table) -> str:
    names = table.names()
    texts = [[cell(name).replace("|", "\\|") for name in names]]
    for row in table.rows:
        cells = [cell(row[name]).replace("|", "\\|") for name in names]
        if table.is_best_bold:
            best = [isinstance(row[name], Measured) and row[name].is_best for name in names]
            cells = [f"**{text}**" if is_best else text
                     for text, is_best in zip(cells, best, strict=True)]  # fmt: skip
        texts.append(cells)
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    is_left = [table.is_left(name) for name in names]

    def drawn(line: Sequence[str]) -> str:
        return " | ".join(
            set_cell_size(text, width) if left else " " * (width - cell_len(text)) + text
            for text, width, left in zip(line, widths, is_left, strict=True)
        )

    rule = "|".join("-" * (width + 2) for width in widths)
    head, *body = (f"| {drawn(line)} |" for line in texts)
    return "\n".join([head, f"|{rule}|", *body])


# These begin a formula in some spreadsheet; the last four are the full-width signs.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV with a header; None is an empty cell. A text that a spreadsheet would take for a
    formula gets an apostrophe before it; control characters are escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_csv_cell(column) for column in columns])
    writer.writerows([_csv_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def json_text(content: Any, indent: int | None = None) -> str:
    """JSON without NaN; control characters are escapes."""
    value = json_value(content)
    text = json.dumps(value, indent=indent, default=str, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_value(value: Any) -> Any:
    """A value that JSON allows: null for NaN and infinities, numbers for decimals, ISO 8601 for
    times, objects for dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json_value(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime) else value
