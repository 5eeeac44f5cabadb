"""Export score against tokens read and its Pareto frontier: the picture, or its points."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import PurePosixPath

from jobs.config.options import ReadOptions
from jobs.export.target import STANDARD_OUTPUT, warn_incomplete
from jobs.frontier.frontier import Point, chosen_column, points_of
from jobs.frontier.frontier_picture import frontier_svg
from jobs.output.csv_text import csv_text
from jobs.output.print_tables import json_text
from jobs.report.render import notes
from jobs.report.report import Report, make_report
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column


def exported_frontier(options: ReadOptions, warn: Callable[[str], None]) -> tuple[str, int]:
    """The points of `metric=`, in the format that `to=` ends in, and their number. `warn` gets a
    line if the run is not complete.

    Raises UsageError for other endings and unknown metrics, and where no method has a score and
    tokens.
    """
    ending = PurePosixPath(options.to).suffix.lower()
    ending = ".csv" if options.to == STANDARD_OUTPUT else ending
    if ending not in FORMATS:
        raise UsageError(f"to={options.to}: write a file that ends in .svg, .csv or .json")
    report = make_report(options)
    column = chosen_column(report, options.metric)
    points = points_of(report, column)
    if not any(point.place for point in points):
        raise UsageError(
            f"run={report.run}: no method has both {column.measure} and tokens of its contexts; "
            "imported answers have no tokens, nor have those of gistmill 0.2"
        )
    warn_incomplete(report.run, report.inputs, warn)
    return FORMATS[ending](report, column, points), len(points)


def _svg(report: Report, column: Column, points: list[Point]) -> str:
    return frontier_svg(report.run, column.heading, points, notes(report))


def _csv(report: Report, column: Column, points: list[Point]) -> str:
    """A column per field of a point; true and false as 1 and 0."""
    rows = [{k: int(v) if isinstance(v, bool) else v for k, v in asdict(p).items()} for p in points]
    return csv_text(rows, [field.name for field in fields(Point)])


def _json(report: Report, column: Column, points: list[Point]) -> str:
    found = {"run": report.run, "metric": column.measure, "points": points}
    return json_text(found, indent=2) + "\n"


FORMATS: Mapping[str, Callable[[Report, Column, list[Point]], str]] = {
    ".svg": _svg,
    ".csv": _csv,
    ".json": _json,
}
