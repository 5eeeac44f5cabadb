"""Export score against tokens read and its Pareto frontier: the picture, or its points."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import PurePosixPath

from jobs.config.options import ReadOptions
from jobs.export.target import STANDARD_OUTPUT, warn_incomplete
from jobs.frontier.frontier import chosen_column, frontier_svg, points_of
from jobs.output.csv_text import csv_text
from jobs.output.print_tables import json_text
from jobs.report.render import notes
from jobs.report.report import make_report
from pipeline.core.errors import UsageError


def exported_frontier(options: ReadOptions, warn: Callable[[str], None]) -> tuple[str, int]:
    """The points of `metric=`, in the format that `to=` ends in, and their number. `warn` gets a
    line if the run is not complete. In CSV true and false are 1 and 0.

    Raises UsageError for other endings and unknown metrics, and where no method has a score and
    tokens.
    """
    ending = PurePosixPath(options.to).suffix.lower()
    if options.to == STANDARD_OUTPUT:
        ending = ".csv"
    if ending not in (".svg", ".csv", ".json"):
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
    if ending == ".svg":
        return frontier_svg(report.run, column.heading, points, notes(report)), len(points)
    rows = [asdict(point) for point in points]
    if ending == ".json":
        found = {"run": report.run, "metric": column.measure, "points": rows}
        return json_text(found, indent=2) + "\n", len(points)
    as_numbers = [{k: int(v) if isinstance(v, bool) else v for k, v in r.items()} for r in rows]
    return csv_text(as_numbers, list(rows[0])), len(points)
