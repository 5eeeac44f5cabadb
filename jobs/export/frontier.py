"""Score against tokens read: a point per method of a report, the Pareto frontier, and their picture
as SVG, for exports and for the page of a run."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path, PurePosixPath
from textwrap import wrap
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.config.options import ReadOptions
from jobs.output.print_tables import (
    STANDARD_OUTPUT,
    csv_text,
    json_text,
    printable,
    warn_incomplete,
)
from jobs.report.columns import measures_by_name
from jobs.report.render import notes
from jobs.report.report import Report, make_report
from jobs.statistics.statistics import Mean
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column

TONES = ("#2f6fca", "#b3541e", "#1f8a4c", "#8a3a9c", "#c03650", "#12808c", "#85701a", "#68758a",
         "#6a5acd", "#a0522d", "#4d7f17", "#b0409c")  # fmt: skip
_LEFT, _TOP, _RIGHT, _BOTTOM = 54, 28, 732, 372  # of the points, in pixels
_LINE, _OF_A_LINE = 17, 110  # pixels; characters
_CAPTION = (
    "Filled, joined by steps: the Pareto frontier, no other method has as high a score with fewer "
    "tokens. Bars: 95% intervals over documents, where there are ten. Means over fewer answers "
    "than others are not compared."
)


@dataclass(frozen=True)
class Point:
    """A method in one group of questions. `score`: the mean of a measure over `n` answers, with its
    95% interval over documents. `tokens`: the mean size of the final contexts of the same answers,
    by the reader's tokenizer; `tokens_n` of them were counted. None: no value. `competes`: it has
    both values, and no other point of its group that has both is over more answers."""

    method: str
    by: str | None
    tokens: float | None
    score: float | None
    low: float | None
    high: float | None
    n: int
    tokens_n: int
    competes: bool = False
    on_frontier: bool = False

    @property
    def place(self) -> tuple[float, float] | None:
        """Rounded, as equal means may differ in their last digits."""
        if self.tokens is None or self.score is None:
            return None
        return round(self.tokens, 6), round(self.score, 6)


def exported_frontier(options: ReadOptions, warn: Callable[[str], None]) -> tuple[str, int]:
    """The points of `metric=`, in the format that `to=` ends in, and their number. `warn` gets a
    line if the run is not complete. Raises UsageError, also if no method has a score and tokens."""
    is_file = options.to != STANDARD_OUTPUT
    ending = PurePosixPath(options.to).suffix.lower() if is_file else ".csv"
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
        content = {"run": report.run, "metric": column.measure, "points": rows}
        return json_text(content, indent=2) + "\n", len(points)
    as_numbers = [{k: int(v) if isinstance(v, bool) else v for k, v in r.items()} for r in rows]
    return csv_text(as_numbers, list(rows[0])), len(points)


def drawn_columns(report: Report) -> list[Column]:
    """The columns that measure answers and of which some method has a mean."""
    means = [item for row in report.rows for item in row.means.items()]
    measures = {name for name, mean in means if mean.mean is not None} & {*report.measures}
    return [column for column in report.columns if column.measure in measures]


def chosen_column(report: Report, wanted: str | None) -> Column:
    """The column of `drawn_columns` with this measure or heading; by default the first. Raises
    UsageError where there is none."""
    columns = {column.measure: column for column in drawn_columns(report)}
    if not columns:
        raise UsageError(f"run={report.run}: no answer has a score")
    if wanted is None:
        return next(iter(columns.values()))
    measure = measures_by_name([*columns.values()]).get(wanted.lower())
    if measure is None:
        scores = ", ".join(columns)
        raise UsageError(f"metric={wanted}: no score of run={report.run}; there are {scores}")
    return columns[measure]


def points_of(report: Report, column: Column) -> list[Point]:
    """A point per row of the report, in its order. A competing point is on the frontier if no other
    of its group has a higher score with at most as many tokens, or an equal one with fewer."""
    (part, *_) = column.geometric_mean_of or column.mean_of_means or (column.measure,)
    points = []
    for row in report.rows:
        score = row.means.get(column.measure) or Mean(None, 0, None, 0)
        tokens = row.tokens.get(part)
        points.append(Point(
            row.method, row.by, tokens.mean if tokens else None, score.mean, score.low, score.high,
            score.n, tokens.n if tokens else 0,
        ))  # fmt: skip
    most = {p.by: max((o.n for o in points if o.by == p.by and o.place), default=0) for p in points}
    points = [replace(p, competes=p.place is not None and p.n == most[p.by]) for p in points]

    def is_on_frontier(point: Point) -> bool:
        tokens, score = point.place or (math.inf, -math.inf)
        rivals = {p.place for p in points if p.competes and p.by == point.by and p.place}
        at_least_as_good = {place for place in rivals if place[0] <= tokens and place[1] >= score}
        return point.competes and at_least_as_good == {point.place}

    return [replace(point, on_frontier=is_on_frontier(point)) for point in points]


def tones_of(methods: Iterable[str]) -> dict[str, int]:
    """An index of TONES by method, the same in all pictures; variants of a method share it."""
    tones: dict[str, int] = {}  # by the name without arguments
    return {m: tones.setdefault(re.split(r"[(\[]", m)[0], len(tones)) % len(TONES)
            for m in methods}  # fmt: skip


def frontier_svg(run: str, heading: str, points: Sequence[Point], notes: Sequence[str] = ()) -> str:
    """A picture with a panel and a legend for each group of the points, of which there must be at
    least one. `heading`: the name of their score. Texts and axes have the color of the page."""
    tones = tones_of(point.method for point in points)
    looks = {method: {"tone": tone, "color": TONES[tone], "number": number}
             for number, (method, tone) in enumerate(tones.items())}  # fmt: skip
    groups = dict.fromkeys(point.by for point in points)
    panels = [_panel([p for p in points if p.by == by], looks) for by in groups]
    title = f"{run}: {heading} against tokens of the final context"
    foot = [line for text in (f"{title}. {_CAPTION}", *notes) for line in wrap(text, _OF_A_LINE)]
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
    )
    svg = templates.get_template("frontier.svg.jinja").render(
        title=title, heading=heading, panels=panels, foot=foot, line=_LINE,
        tops=[*accumulate(panel["height"] for panel in panels)],
        left=_LEFT, top=_TOP, right=_RIGHT, bottom=_BOTTOM,
    )  # fmt: skip
    return printable(svg)


def _panel(points: Sequence[Point], looks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the template draws of one group. Tokens are drawn by their logarithm, 0 as 1."""
    placed = [(point, *point.place) for point in points if point.place]
    powers = [math.log10(max(tokens, 1)) for _, tokens, _ in placed] or [0.0]
    first = math.floor(min(powers))
    last = max(math.ceil(max(powers)), first + 1)
    values = [v for p, *_ in placed for v in (p.score, p.low, p.high) if v is not None]
    scores = _round_numbers(min([0.0, *values]), max(values, default=100.0))

    def across(tokens: float) -> float:
        share = (math.log10(max(tokens, 1)) - first) / (last - first)
        return round(_LEFT + share * (_RIGHT - _LEFT), 1)

    def up(score: float) -> float:
        share = (score - scores[0]) / (scores[-1] - scores[0])
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    best = sorted((tokens, score) for point, tokens, score in placed if point.on_frontier)
    marks = [
        {**looks[p.method], "point": p, "place": p.place and (across(p.place[0]), up(p.place[1])),
         "bar": None if p.low is None or p.high is None else (up(p.high), up(p.low))}
        for p in points
    ]  # fmt: skip
    return {
        "group": points[0].by,
        "across": [(across(10.0**n), f"{10**n:,}") for n in range(first, last + 1)],
        "up": [(up(number), f"{number:,g}") for number in scores],
        "steps": [(across(tokens), up(score)) for tokens, score in best],
        "marks": marks,
        "height": _BOTTOM + 62 + _LINE * len(points),
    }


def _round_numbers(low: float, high: float) -> list[float]:
    """About five multiples of 1, 2 or 5 times a power of ten, around `low` and `high`."""
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
    return [n * step for n in range(math.floor(low / step), max(math.ceil(high / step), 1) + 1)]
