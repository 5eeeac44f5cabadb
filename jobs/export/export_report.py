"""Export the table of a run as CSV or LaTeX."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from jobs.config.options import ReadOptions
from jobs.export.target import warn_incomplete
from jobs.output.cells import Part
from jobs.output.csv_text import csv_text
from jobs.output.latex import latex
from jobs.report.render import ANSWERED, BEST, REPEATED, score_table
from jobs.report.report import Report, Row, make_report
from pipeline.core.errors import UsageError

_COUNTS = (
    *("answered", "unscored", "calls", "tokens"),
    *("memory_calls", "memory_tokens", "judging_calls", "judging_tokens"),
)
_HEADINGS = {"method": "Method", "by": "Group"}


def exported_report(
    options: ReadOptions, with_intervals: bool, warn: Callable[[str], None]
) -> tuple[str, int]:
    """The report in `format=`, of the methods whose names begin with `method=`; and the number of
    its rows. `warn` gets a line if the run is not complete. Raises UsageError."""
    form = options.format or "csv"
    if form not in FORMATS:
        raise UsageError(f"format={form}: no such format; there are {', '.join(FORMATS)}")
    report = make_report(options)
    warn_incomplete(report.run, report.inputs, warn)
    return FORMATS[form](report, with_intervals), len(report.rows)


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


def latex_report(report: Report, with_intervals: bool) -> str:
    """A tabular with a row per method and group, below what its numbers are over."""
    table = score_table(report, with_intervals)
    rows = [{_HEADINGS.get(k, k): value for k, value in row.items()} for row in table.rows]
    return latex([*_notes(report, with_intervals), replace(table, rows=rows, left=["Group"])])


def _notes(report: Report, with_intervals: bool) -> Iterator[Part]:
    foot = report.foot
    yield f"gistmill, run {report.run}, corpus {foot['corpus']}, engine {foot['engine']}"
    yield "Means over all $n$ answers, a problem counts 0; ($n$=...): over so many of them."
    yield ANSWERED
    yield f"Bold: {BEST}"
    yield r"Needs \usepackage{booktabs}."
    if report.inputs["not_done"]:
        yield "INCOMPLETE: {not_done} of {planned} inputs are not done.".format(**report.inputs)
    if foot["repeats"] > 1:
        repeated = REPEATED[foot["repeat_from"]]
        yield f"$n$ counts {foot['repeats']} repeats of every question; {repeated}."
    if with_intervals:
        yield "In brackets: 95% interval over documents (cluster bootstrap)."
    if with_intervals and foot["repeats"] > 1:
        yield "sd: standard deviation of the repeats' means (n - 1)."


FORMATS: Mapping[str, Callable[[Report, bool], str]] = {"csv": _csv, "latex": latex_report}
