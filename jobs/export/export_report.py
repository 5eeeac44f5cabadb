"""Export the table of a run as CSV, LaTeX or Markdown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobs.config.options import ReadOptions
from jobs.export.paper_table import paper_table
from jobs.export.target import warn_incomplete
from jobs.output.cells import Part, Table
from jobs.output.csv_text import csv_text
from jobs.output.latex import TEXT_WIDTH, fitted, latex, points
from jobs.report.columns import with_columns
from jobs.report.render import report_page
from jobs.report.report import Report, Row, make_report
from pipeline.core.errors import UsageError

_COUNTS = (
    *("answered", "unscored", "calls", "tokens"),
    *("memory_calls", "memory_tokens", "judging_calls", "judging_tokens"),
)
Warn = Callable[[str], None]


def exported_report(options: ReadOptions, with_intervals: bool, warn: Warn) -> tuple[str, int]:
    """The report in `format=`, of the methods whose names begin with `method=`; and the number of
    its rows. `warn` gets a line if the run is not complete, and if the table is split. Raises
    UsageError."""
    form = options.format or "csv"
    if form not in FORMATS:
        raise UsageError(f"format={form}: no such format; there are {', '.join(FORMATS)}")
    for key, forms in _ONLY_OF.items():
        if getattr(options, key) is not None and form not in forms:
            raise UsageError(f"{key}= is for format={' and '.join(forms)}; leave it out")
    report = make_report(options)
    warn_incomplete(report.run, report.inputs, warn)
    return FORMATS[form](report, options, with_intervals, warn), len(report.rows)


def _csv(report: Report, options: ReadOptions, with_intervals: bool, warn: Warn) -> str:
    """A column per measure with all digits, and the number of answers that each mean is over; with
    intervals their ends, the mean over answered questions and the sd over repeats, too. Names are
    the canonical ones."""
    counts = _COUNTS if options.columns is None else ()
    shown = with_columns(report, options.columns, None)
    rows = [dict(_cells(row, shown, with_intervals, counts)) for row in report.rows]
    return csv_text(rows, list(rows[0]) if rows else ["method"])


def _cells(
    row: Row, report: Report, with_intervals: bool, counts: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    yield "method", row.method
    if any(other.by is not None for other in report.rows):
        yield "group", row.by
    yield "n", row.counts.get("n")
    for column in report.columns:
        name, mean = column.measure, row.means.get(column.measure)
        yield name, mean.mean if mean else row.counts.get(name)
        yield f"{name}_n", mean.n if mean else None
        if with_intervals and column.has_interval:
            yield f"{name}_low", mean.low if mean else None
            yield f"{name}_high", mean.high if mean else None
            yield f"{name}_answered", mean.answered_mean if mean else None
            yield f"{name}_sd_over_repeats", mean.sd if mean else None
    for name in counts:
        yield name, row.counts.get(name)


def latex_report(report: Report, options: ReadOptions, with_intervals: bool, warn: Warn) -> str:
    """A float with a row per method and group, below comments on where it is from. A table that is
    wider than the text is split by groups of columns, which `warn` and a comment say."""
    table = paper_table(report, options, with_intervals)
    width = options.width or TEXT_WIDTH
    tables = fitted(table, width)
    lines = [_SPLIT.format(points(table, width), width, len(tables))] if len(tables) > 1 else []
    wide = [part for part in tables if points(part, width) > width]
    lines += [_TOO_WIDE.format(", ".join(_headings(part)), width) for part in wide]
    lines += [_TALL.format(len(table.rows))] if len(table.rows) > _MOST_ROWS else []
    for line in lines:
        warn(line)
    return latex([*_notes(report), *lines, *tables], width)


def _headings(table: Table) -> list[str]:
    return table.names()[table.num_keys :]


def _markdown(report: Report, options: ReadOptions, with_intervals: bool, warn: Warn) -> str:
    """The caption, then the table."""
    return report_page([paper_table(report, options, with_intervals)]) + "\n"


def _notes(report: Report) -> Iterator[Part]:
    foot = report.foot
    yield f"gistmill, run {report.run}, corpus {foot['corpus']}, engine {foot['engine']}"
    yield r"Needs \usepackage{booktabs}."
    if report.inputs["not_done"]:
        yield "INCOMPLETE: {not_done} of {planned} inputs are not done.".format(**report.inputs)


_SPLIT = (
    "the table is {:.0f} pt wide, wider than \\textwidth ({:.0f} pt), so it is split by groups "
    "into {} tables; columns= chooses fewer columns, width= is another width"
)
_TOO_WIDE = "{} and its keys are still wider than {:.0f} pt; give shorter names in names=FILE"
_MOST_ROWS = 45  # of a page of the class article
_TALL = "the table has {} rows, more than a page takes; method= chooses fewer"
_PAPER = ("latex", "markdown")
_ONLY_OF = {
    "names": _PAPER, "caption": _PAPER, "marks": _PAPER, "label": ("latex",), "width": ("latex",),
}  # fmt: skip
FORMATS: Mapping[str, Callable[[Report, ReadOptions, bool, Warn], str]] = {
    "csv": _csv,
    "latex": latex_report,
    "markdown": _markdown,
}
