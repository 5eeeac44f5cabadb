"""Score against tokens read: a point per method of a report, and which of them are on the Pareto
frontier."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.report.columns import measures_by_name
from jobs.report.names import PAPER, read_names
from jobs.report.report import Report, Row
from pipeline.core.errors import UsageError
from pipeline.work.stage import Column


@dataclass(frozen=True)
class Point:
    """A method in one group of questions (`by`).

    `score`: the mean of a measure over `n` answers, a problem counts 0; None: none has a value.
    `low` and `high`: its 95% interval over documents. `tokens`: the mean, by the reader's
    tokenizer, of the final contexts of the same answers, of which `tokens_n` were counted; None:
    none was. `competes`: it has both, and no point of its group that has both is over more answers.
    """

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
        """Tokens and score; None if one is missing."""
        return None if self.tokens is None or self.score is None else (self.tokens, self.score)


def drawn_columns(report: Report) -> list[Column]:
    """The columns that measure answers, without those of which no method has a mean."""
    means = [(name, mean.mean) for row in report.rows for name, mean in row.means.items()]
    known = {name for name, mean in means if mean is not None}
    return [c for c in report.columns if c.measure in known and c.measure in report.measures]


def chosen_column(report: Report, wanted: str | None) -> Column:
    """The column of this measure or heading, also as papers print it, by default the first of
    `drawn_columns`. Raises UsageError for others, and if no answer has a score."""
    known = drawn_columns(report)
    if not known:
        raise UsageError(f"run={report.run}: no answer has a score")
    if wanted is None:
        return known[0]
    measure = measures_by_name(known, read_names(PAPER, report.foot.get("plugins"))).get(
        wanted.lower()
    )
    if measure is None:
        there = ", ".join(c.measure for c in known)
        raise UsageError(f"metric={wanted}: no score of run={report.run}; there are {there}")
    return next(column for column in known if column.measure == measure)


def points_of(report: Report, column: Column) -> list[Point]:
    """A point per row of the report, in its order.

    On the frontier are those that compete and that no other, which competes in their group, leaves
    behind: by a higher score with at most as many tokens, or as high a one with fewer. Floors and
    ceilings take part as all methods do.
    """
    points = [_point(row, column) for row in report.rows]
    most: dict[str | None, int] = {}
    for point in points:
        if point.place:
            most[point.by] = max(point.n, most.get(point.by, 0))
    points = [replace(p, competes=p.place is not None and p.n == most[p.by]) for p in points]
    return [replace(p, on_frontier=p.competes and not _is_behind(p, points)) for p in points]


def _point(row: Row, column: Column) -> Point:
    (part, *_) = column.geometric_mean_of or column.mean_of_means or (column.measure,)
    score, tokens = row.means.get(column.measure), row.tokens.get(part)
    return Point(
        method=row.method, by=row.by,
        tokens=tokens.mean if tokens else None, tokens_n=tokens.n if tokens else 0,
        score=score.mean if score else None, n=score.n if score else 0,
        low=score.low if score else None, high=score.high if score else None,
    )  # fmt: skip


def _is_behind(point: Point, points: Sequence[Point]) -> bool:
    tokens, score = _rounded(point)
    rivals = [_rounded(rival) for rival in points if rival.competes and rival.by == point.by]
    return any(x <= tokens and y >= score and (x, y) != (tokens, score) for x, y in rivals)


def _rounded(point: Point) -> tuple[float, float]:
    """Tokens and score without their last digits, in which equal means may differ."""
    tokens, score = point.place or (math.inf, -math.inf)
    return round(tokens, 6), round(score, 6)
