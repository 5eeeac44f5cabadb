"""Means of a report over the questions that have a value, and the counts they are over."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.report.intervals import interval, sd
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class Mean:
    """A mean over the `n` answers that have a value (a problem counts 0), and the mean over those
    of them without a problem."""

    mean: float | None
    n: int
    answered_mean: float | None
    answered_n: int
    low: float | None = None  # 95% interval of the mean over documents
    high: float | None = None
    sd: float | None = None  # of the repeats' means; None for a single one
    repeats: int = 1  # that have a value


Key = tuple[str, str | None]
"""A method and a group of questions."""


@dataclass
class _Values:
    """The sums of one measure of one key: overall, by document, by repeat."""

    overall: dict[str, Any]
    sums: list[tuple[float, int]]
    repeats: list[float]


def means_of(connection: Any, columns: Sequence[Column]) -> dict[Key, dict[str, Mean]]:
    """Every measure of every method and group in the table `mine`, and the geometric means and the
    means of means that are columns."""
    found: dict[Key, dict[str, Mean]] = defaultdict(dict)
    parts = {c.measure: c.geometric_mean_of for c in columns if c.geometric_mean_of}
    for key, values in _by_measure(connection).items():
        wanted = {**{measure: (measure,) for measure in values}, **parts}
        for measure, names in wanted.items():
            if all(name in values for name in names):
                found[key][measure] = _mean([values[name] for name in names])
    for column in columns:
        for key, mean in _means_of_means(connection, column).items():
            found[key][column.measure] = mean
    return found


def _means_of_means(connection: Any, column: Column) -> dict[Key, Mean]:
    """The means of means of a column, each with its number of answers; without an interval."""
    if not column.mean_of_means:
        return {}
    measure, group = column.mean_of_means
    rows = query(connection, filled(_SQL["of_means"], measure=measure, group=group))
    found = {(row.pop("method"), row.pop("by_value")): row for row in rows}
    per_repeat: dict[Key, list[float]] = defaultdict(list)
    for row in query(connection, filled(_SQL["of_means_per_repeat"], measure=measure, group=group)):
        per_repeat[row["method"], row["by_value"]].append(row["mean"])
    return {key: Mean(**row, sd=sd(per_repeat[key]), repeats=len(per_repeat[key]))
            for key, row in found.items()}  # fmt: skip


def _mean(parts: Sequence[_Values]) -> Mean:
    """The geometric mean of the parts' means, which is the mean of a single part. All parts are
    over the same answers; in the interval documents are drawn once for all of them."""
    first = parts[0]
    counts = [n for _, n in first.sums]
    low, high = interval([[s for s, _ in part.sums] for part in parts], counts) or (None, None)
    by_repeat = [geometric_mean(means) for means in zip(*(p.repeats for p in parts), strict=True)]
    answered = [part.overall["answered_mean"] for part in parts]
    return Mean(
        mean=geometric_mean([part.overall["mean"] for part in parts]),
        n=first.overall["n"],
        answered_mean=None if None in answered else geometric_mean(answered),
        answered_n=first.overall["answered_n"],
        low=low,
        high=high,
        sd=sd(by_repeat),
        repeats=len(by_repeat),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; 0 if one value is 0 (which statistics.geometric_mean refuses)."""
    return values[0] if len(values) == 1 else math.prod(values) ** (1 / len(values))


def _by_measure(connection: Any) -> dict[Key, dict[str, _Values]]:
    found: dict[Key, dict[str, _Values]] = defaultdict(dict)
    for row in query(connection, _SQL["overall"]):
        found[row["method"], row["by_value"]][row["measure"]] = _Values(row, [], [])
    for row in query(connection, _SQL["per_document"]):
        values = found[row["method"], row["by_value"]][row["measure"]]
        values.sums.append((row["s"], row["n"]))
    for row in query(connection, _SQL["per_repeat"]):
        found[row["method"], row["by_value"]][row["measure"]].repeats.append(row["mean"])
    return found


def best_of(
    rows: Sequence[tuple[str | None, Mapping[str, Mean]]], columns: Sequence[Column]
) -> list[tuple[str, ...]]:
    """For each row, its group and its means, the measures of which it has the best mean.

    Only of columns in which more is better, and among the rows of its group that are over the most
    answers: a mean over fewer is over other questions. Floors and ceilings take part as all methods
    do. All that print alike are best; none is, if all rows do or there is only one.
    """
    found: list[list[str]] = [[] for _ in rows]
    for measure in (column.measure for column in columns if column.more_is_better):
        for group in dict.fromkeys(by for by, _ in rows):
            own = {place: means[measure] for place, (by, means) in enumerate(rows)
                   if by == group and measure in means}  # fmt: skip
            for place in _best(own):
                found[place].append(measure)
    return [tuple(names) for names in found]


def _best(means: Mapping[int, Mean]) -> list[int]:
    """The positions of the highest means, as printed, of those over the most answers."""
    most = max((mean.n for mean in means.values()), default=0)
    shown = {place: f"{mean.mean:.1f}" for place, mean in means.items()
             if mean.mean is not None and mean.n == most}  # fmt: skip
    if len({*shown.values()}) < 2:
        return []
    highest = max(shown.values(), key=float)
    return [place for place, text in shown.items() if text == highest]
