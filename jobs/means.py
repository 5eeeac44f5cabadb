"""Means of a report: over the questions that have a value, and what each rests on."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.intervals import interval, sd
from pipeline.stage import Column
from pipeline.store.views import query


@dataclass(frozen=True)
class Mean:
    """A mean over the `n` answers that have a value (a problem counts 0), and over those of them
    without a problem."""

    mean: float | None
    n: int
    answered_mean: float | None
    answered_n: int
    low: float | None = None  # 95% interval of the mean over documents
    high: float | None = None
    sd: float | None = None  # of the repeats' means; null for a single one
    repeats: int = 1  # that have a value


Key = tuple[str, str | None]
"""A method and a group of questions."""


@dataclass
class _Values:
    """What one measure of one key adds up to: overall, by document, by repeat."""

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
    """Each with its number of answers; without an interval."""
    if not column.mean_of_means:
        return {}
    measure, group = column.mean_of_means
    rows = query(connection, _OF_MEANS.format(measure=measure, group=group))
    found = {(row.pop("method"), row.pop("by_value")): row for row in rows}
    per_repeat: dict[Key, list[float]] = defaultdict(list)
    for row in query(connection, _OF_MEANS_PER_REPEAT.format(measure=measure, group=group)):
        per_repeat[row["method"], row["by_value"]].append(row["mean"])
    return {key: Mean(**row, sd=sd(per_repeat[key]), repeats=len(per_repeat[key]))
            for key, row in found.items()}  # fmt: skip


def _mean(parts: Sequence[_Values]) -> Mean:
    """The geometric mean of the parts' means, which is the mean of a single one. All parts are over
    the same answers; in the interval documents are drawn once for all of them."""
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
    """0 where one value is (statistics.geometric_mean refuses it)."""
    return values[0] if len(values) == 1 else math.prod(values) ** (1 / len(values))


def _by_measure(connection: Any) -> dict[Key, dict[str, _Values]]:
    found: dict[Key, dict[str, _Values]] = defaultdict(dict)
    for row in query(connection, _OVERALL):
        found[row["method"], row["by_value"]][row["measure"]] = _Values(row, [], [])
    for row in query(connection, _PER_DOCUMENT):
        values = found[row["method"], row["by_value"]][row["measure"]]
        values.sums.append((row["s"], row["n"]))
    for row in query(connection, _PER_REPEAT):
        found[row["method"], row["by_value"]][row["measure"]].repeats.append(row["mean"])
    return found


# In order: the last digit of a sum of floats would differ from one look to the next.
_OVERALL = """
select method, by_value, measure, avg(value order by value) as mean, count(*) as n,
  avg(value order by value) filter (problem is null) as answered_mean,
  count(*) filter (problem is null) as answered_n
from mine group by method, by_value, measure"""
_PER_DOCUMENT = """
select method, by_value, measure, document_id, sum(value order by value) as s, count(*) as n
from mine group by all order by document_id"""
_PER_REPEAT = """
select method, by_value, measure, repeat, avg(value order by value) as mean
from mine group by all order by repeat"""
_OF_MEANS = """
with means as (
  select method, by_value, {group}, avg(value order by value) as mean, count(*) as n,
    avg(value order by value) filter (mine.problem is null) as answered_mean,
    count(*) filter (mine.problem is null) as answered_n
  from mine join questions using (question_id) where measure = '{measure}' group by all)
select method, by_value, avg(mean order by mean) as mean, sum(n)::bigint as n,
  avg(answered_mean order by answered_mean) as answered_mean, sum(answered_n)::bigint as answered_n
from means group by method, by_value"""
_OF_MEANS_PER_REPEAT = """
with means as (
  select method, by_value, repeat, {group}, avg(value order by value) as mean
  from mine join questions using (question_id) where measure = '{measure}' group by all)
select method, by_value, repeat, avg(mean order by mean) as mean
from means group by all order by repeat"""
