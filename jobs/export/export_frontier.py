"""Export score against tokens read, with the Pareto frontier: a picture, or its points."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import PurePosixPath

from jobs.config.options import ReadOptions
from jobs.export.target import STANDARD_OUTPUT, warn_incomplete
from jobs.output.csv_text import csv_text
from jobs.output.print_tables import json_text
from jobs.report.frontier import Point, chosen_column, points_of
from jobs.report.frontier_picture import frontier_svg, picture_title
from jobs.report.report import Report, make_report
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column
