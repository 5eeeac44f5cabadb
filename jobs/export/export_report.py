"""Export the table of a run as CSV or LaTeX."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from jobs.config.options import ReadOptions
from jobs.export.latex import latex
from jobs.export.target import warn_incomplete
from jobs.output.csv_text import csv_text
from jobs.report.means import best_of
from jobs.report.report import Report, Row, make_report
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest

_COUNTS = ("answered", "unscored", "calls", "tokens")


def exported_report(
    options: ReadOptions, with_intervals: bool, warn: Callable[[str], None]
) -> tuple[str, int]:
    """The report in `format=`, by default CSV, of the methods whose names begin with `method=`; and
    the number of its rows. `warn` gets a line if the run is not complete. Raises UsageError."""
    form = FORMATS.get(options.format or "csv")
    if form is None:
        raise UsageError(f"format={options.format}: no such format; there are {', '.join(FORMATS)}")
    report = make_report(options)
    if options.method is not None:
        names = dict.fromkeys(row.method for row in report.rows)
        rows = tuple(row for row in report.rows if row.method.startswith(options.method))
        if not rows:
            near = nearest(options.method, sorted(names), 5)
            raise UsageError(f"method={options.method}: not in the run; nearest: {near}")
        best = best_of([(row.by, row.means) for row in rows], report.columns)
        rows = tuple(replace(row, best=own) for row, own in zip(rows, best, strict=True))
        report = replace(report, rows=rows)
    warn_incomplete(report.run, report.inputs, warn)
    return form(report, with_intervals), len(report.rows)


def _csv(report: Report, with_intervals: bool) -> str:
    """A column per measure with all digits, and the number of answers that each mean is over; with
    intervals their ends, the mean over answered questions and the sd over repeats, too."""
    rows = [dict(_cells(row, report, with_intervals)) for row in report.rows]
    return csv_text(rows, list(rows[0]) if rows else ["method"])


def _cells(row: Row, report: Report, with_intervals: bool) -> Iterator[tuple[str, Any]]:
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
    for name in _COUNTS:
        yield name, row.counts.get(name)


FORMATS: Mapping[str, Callable[[Report, bool], str]] = {"csv": _csv, "latex": latex}
