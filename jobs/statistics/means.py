"""Means of a report over the questions that have a value, their counts, and their uncertainty: 95%
intervals over documents, standard deviations over repeats."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)
LEAST_DOCUMENTS = 10
RESAMPLES = 2000
_MOST_AT_ONCE = 50_000  # sums of documents
_DRAWN_AT_ONCE = 1_000_000  # documents: some 30 MB


def interval(sums: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """The 95% percentile interval of a mean over questions, of which each document has a sum and a
    count. Questions about one document are correlated, so whole documents are drawn, with
    replacement (cluster bootstrap). None below 10 documents."""
    if len(counts) < LEAST_DOCUMENTS:
        return None
    total, num = resampled([sums, counts])
    return percentiles([total / num])


def percentiles(means: Sequence[Any]) -> tuple[float, float]:
    """The 95% percentile interval of the geometric mean of means, each an array over resamples."""
    low, high = np.percentile(np.prod(means, axis=0) ** (1 / len(means)), [2.5, 97.5])
    return float(low), float(high)


def resampled(columns: Sequence[Sequence[float]]) -> Any:
    """The sums of columns, which have a value per document, over documents drawn with replacement,
    the same for all columns: an array of columns x RESAMPLES."""
    values, draw = np.column_stack(columns).astype(float), np.random.default_rng(0)
    num = len(values)
    at_once = max(1, _DRAWN_AT_ONCE // num)
    sums = []
    for first in range(0, RESAMPLES, at_once):
        some = min(at_once, RESAMPLES - first)
        drawn = draw.integers(0, num, (some, num)) + num * np.arange(some)[:, None]
        times = np.bincount(drawn.ravel(), minlength=some * num).reshape(some, num)
        sums.append(times.astype(float) @ values)
    return np.concatenate(sums).T


def sd(means: Sequence[float]) -> float | None:
    """The standard deviation of the repeats' means (n - 1). None for a single repeat."""
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


@dataclass(frozen=True)
class Mean:
    """A mean over the `n` answers that have a value (a problem counts 0), and the mean over the
    `answered_n` of them without a problem."""

    mean: float | None
    n: int
    answered_mean: float | None
    answered_n: int
    low: float | None = None  # 95% interval of the mean over documents
    high: float | None = None
    sd: float | None = None  # of the repeats' means; None for a single one
    repeats: int = 1  # that have a value


MethodGroup = tuple[str, str | None]  # a method and a group of questions


def means_of(connection: Any, columns: Sequence[Column]) -> dict[MethodGroup, dict[str, Mean]]:
    """Every measure of every method and group in the table `of_documents`, and the columns that are
    geometric means or means of means, from the view `mine`."""
    rows: dict[MethodGroup, dict[str, dict[str, Any]]] = defaultdict(dict)
    asking = "select measure, count(*) as n from of_documents group by all order by all"
    measures = [(text(row["measure"]), row["n"]) for row in query(connection, asking)]
    # Of a large run one measure's lists at a time.
    is_small = sum(num for _, num in measures) <= _MOST_AT_ONCE
    names = [name for name, _ in measures]
    for some in [", ".join(names)] if is_small and names else names:
        for row in query(connection, filled(_SQL["overall"], measures=some)):
            compact = {name: np.asarray(row[name]) for name in ("sums", "counts")}
            rows[row["method"], row["by_value"]][row.pop("measure")] = {**row, **compact}
    _draw([row for of in rows.values() for row in of.values()])
    means: dict[MethodGroup, dict[str, Mean]] = defaultdict(dict)
    parts = {c.measure: c.geometric_mean_of for c in columns if c.geometric_mean_of}
    for key, of in rows.items():
        wanted = {**{measure: (measure,) for measure in of}, **parts}
        means[key] = {
            measure: _mean([of[name] for name in names])
            for measure, names in wanted.items()
            if all(name in of for name in names)
        }
    for column in columns:
        if column.mean_of_means:
            for key, mean in _means_of_means(connection, *column.mean_of_means).items():
                means[key][column.measure] = mean
    return means


def _draw(rows: Sequence[dict[str, Any]]) -> None:
    """Add `drawn` to each row with enough documents: its mean over each resample of them."""
    by_num = defaultdict[int, list[dict[str, Any]]](list)
    for row in rows:
        by_num[len(row["counts"])].append(row)
    for num, alike in by_num.items():
        if num >= LEAST_DOCUMENTS:
            drawn = resampled([row[name] for row in alike for name in ("sums", "counts")])
            for row, sums, counts in zip(alike, drawn[::2], drawn[1::2], strict=True):
                row["drawn"] = sums / counts


def _means_of_means(connection: Any, measure: str, group: str) -> dict[MethodGroup, Mean]:
    """Without intervals. `group`: a column of questions; each of its values has a mean."""
    per_repeat: dict[MethodGroup, list[float]] = defaultdict(list)
    for row in query(connection, filled(_SQL["of_means_per_repeat"], measure=measure, group=group)):
        per_repeat[row["method"], row["by_value"]].append(row["mean"])
    means = {}
    for row in query(connection, filled(_SQL["of_means"], measure=measure, group=group)):
        key = row.pop("method"), row.pop("by_value")
        means[key] = Mean(**row, sd=sd(per_repeat[key]), repeats=len(per_repeat[key]))
    return means


def _mean(parts: Sequence[Mapping[str, Any]]) -> Mean:
    """The geometric mean of the parts' means; of a single part its mean. All parts are over the
    same answers; for the interval, documents are drawn once for all of them."""
    first = parts[0]
    low, high = percentiles([part["drawn"] for part in parts]) if "drawn" in first else (None, None)
    repeats = zip(*(part["repeats"] for part in parts), strict=True)
    by_repeat = [geometric_mean(means) for means in repeats]
    answered = [part["answered_mean"] for part in parts]
    return Mean(
        mean=geometric_mean([part["mean"] for part in parts]),
        n=first["n"],
        answered_mean=None if None in answered else geometric_mean(answered),
        answered_n=first["answered_n"],
        low=low,
        high=high,
        sd=sd(by_repeat),
        repeats=len(by_repeat),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; 0 if one value is 0 (which statistics.geometric_mean refuses)."""
    return values[0] if len(values) == 1 else math.prod(values) ** (1 / len(values))
