"""Means over the questions that have a value, with 95% intervals over documents and standard
deviations over repeats; paired tests of two methods, and the rows that a report marks as best by
them. Questions about one document are correlated, so documents are the clusters: intervals draw
whole documents, and tests flip the signs of whole documents."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from operator import attrgetter
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
MOST_ENUMERATED = 20  # with up to so many documents all 2**20 flips are enumerated
DRAWS = 19_999  # random flips for more documents
_MOST_QUICK = 14  # documents, where many tests are made
_BATCH = 4_000_000  # signs drawn at once
_ROUNDING = 1e-9  # values and sums closer than this, as a share, are equal
LEVEL = 0.05  # significant if the adjusted p-value is below


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
Means = Mapping[MethodGroup, Mapping[str, Mean]]  # then by measure


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
    of = {"measure": text(measure), "group": group}
    for row in query(connection, filled(_SQL["of_means_per_repeat"], **of)):
        per_repeat[row["method"], row["by_value"]].append(row["mean"])
    means = {}
    for row in query(connection, filled(_SQL["of_means"], **of)):
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


@dataclass(frozen=True)
class Paired:
    """Two methods' values of one metric on `n` questions; `difference` is the mean of a - b, with
    its 95% interval over documents. `p` is two-sided; `draws` is None if it is exact. A win is a
    question on which a is higher."""

    n: int
    documents: int
    mean_a: float
    mean_b: float
    difference: float
    low: float | None
    high: float | None
    p: float
    draws: int | None
    wins: int
    ties: int
    losses: int


def paired(a: Sequence[float], b: Sequence[float], documents: Sequence[str]) -> Paired:
    """A value and a document per question, at least one question."""
    of_a, of_b = np.asarray(a, float), np.asarray(b, float)
    differences = np.where(is_tie(of_a, of_b), 0.0, of_a - of_b)
    _, numbers, counts = np.unique(np.asarray(documents), return_inverse=True, return_counts=True)
    sums = np.bincount(numbers, weights=differences)
    low, high = interval(list(sums), list(counts)) or (None, None)
    p, draws = sign_flip(sums)
    return Paired(
        n=len(differences),
        documents=len(counts),
        mean_a=float(of_a.mean()),
        mean_b=float(of_b.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        p=p,
        draws=draws,
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
    )


def swapped(of: Paired) -> Paired:
    """The comparison of b with a."""
    low, high = (None if bound is None else -bound for bound in (of.high, of.low))
    return replace(of, mean_a=of.mean_b, mean_b=of.mean_a, difference=-of.difference,
                   low=low, high=high, wins=of.losses, losses=of.wins)  # fmt: skip


def is_tie(a: Any, b: Any) -> Any:
    """True if values are equal except for rounding, as means over repeats may be."""
    return np.isclose(a, b, rtol=_ROUNDING, atol=_ROUNDING)


def sign_flip(sums: Any) -> tuple[float, int | None]:
    """The two-sided p-value of the permutation test that the two methods are interchangeable within
    each document, and the number of random flips; None if all flips were enumerated.

    `sums`: per document, the sum of its questions' differences. p is the share of flips whose total
    is at least as far from 0 as the observed total, which is counted beside random flips.
    """
    sums = np.asarray(sums, float)
    total_size = np.abs(sums).sum()
    moving = sums[np.abs(sums) > _ROUNDING * total_size]  # flipping the others changes nothing
    least = abs(moving.sum()) - _ROUNDING * total_size
    if len(moving) <= MOST_ENUMERATED:
        totals = np.array(moving[:1] if len(moving) else [0.0])  # the rest have the opposite sign
        for of_document in moving[1:]:
            totals = np.concatenate([totals + of_document, totals - of_document])
        return float((np.abs(totals) >= least).mean()), None
    draw, num_as_far, left = np.random.default_rng(0), 0, DRAWS
    while left:
        size = min(left, max(1, _BATCH // len(moving)))
        is_kept = draw.integers(0, 2, (size, len(moving)), dtype=np.int8)
        totals = 2 * (is_kept @ moving) - moving.sum()
        num_as_far += int((np.abs(totals) >= least).sum())
        left -= size
    return (1 + num_as_far) / (1 + DRAWS), DRAWS


def quick_sign_flip(sums: Any) -> float:
    """The p-value of `sign_flip` without random flips: exact for few documents; for more, by a
    normal distribution whose mean is 0 and whose variance is the sum of the squares."""
    sums = np.asarray(sums, float)
    if np.count_nonzero(sums) <= _MOST_QUICK:
        return sign_flip(sums)[0]
    return math.erfc(abs(sums.sum()) / math.sqrt(2 * np.square(sums).sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number, in the same order: the smallest of m is multiplied by
    m, the next by m - 1 and so on; none is smaller than one before it, or above 1 (Holm 1979, A
    simple sequentially rejective multiple test procedure)."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


@dataclass(frozen=True)
class Pair:
    """A test: the method with the highest mean of a group, against another."""

    by: str | None
    measure: str
    leader: str
    method: str


def pairs_of(means: Means, columns: Sequence[Column]) -> list[Pair]:
    """The tests of a table, by column and group, higher means first. Only columns that are means
    over answers and in which more is better are tested, and only the rows with the most answers, as
    a mean over fewer answers is over other questions. Floors and ceilings take part."""
    tested = [column.measure for column in columns if column.more_is_better
              and not (column.geometric_mean_of or column.mean_of_means)]  # fmt: skip
    pairs: list[Pair] = []
    for measure, by in product(tested, dict.fromkeys(by for _, by in means)):
        by_method = {method: of[measure] for (method, group), of in means.items()
                     if group == by and measure in of}  # fmt: skip
        most = max((mean.n for mean in by_method.values()), default=0)
        values = {method: mean.mean for method, mean in by_method.items()
                  if mean.n == most and mean.mean is not None}  # fmt: skip
        leader, *rest = sorted(values, key=values.__getitem__, reverse=True) or [""]
        pairs += [Pair(by, measure, leader, method) for method in rest]
    return pairs


def p_values(connection: Any, pairs: Sequence[Pair]) -> list[float]:
    """The p-value of each test over documents, adjusted for all by Holm's method."""
    columns = [[getattr(pair, name) for pair in pairs] for name in Pair.__annotations__]
    connection.execute(_SQL["pairs"], [len(pairs), *columns])
    query(connection, _SQL["paired_sums"])
    if query(connection, "from paired_sums where not is_of_all limit 1"):
        query(connection, _SQL["paired_values"])  # which reads every value again
    sums = {row["number"]: row["differences"] for row in query(connection, _SQL["differences"])}
    return holm([quick_sign_flip(sums.get(number, [])) for number in range(len(pairs))])


def best_of(tests: Mapping[Pair, float]) -> dict[MethodGroup, list[str]]:
    """By method and group, the measures in which the method is marked. Marked are the leader and
    all methods down to the last that it does not beat; none if that is the last of all. `tests`: of
    each column and group the highest mean first."""
    marked: dict[MethodGroup, list[str]] = defaultdict(list)
    for _, of_column in groupby(tests, key=attrgetter("by", "measure")):
        pairs = list(of_column)
        not_beaten = [number for number, pair in enumerate(pairs) if tests[pair] >= LEVEL]
        equals = [pair.method for pair in pairs[: max(not_beaten, default=-1) + 1]]
        for method in (pairs[0].leader, *equals) if len(equals) < len(pairs) else ():
            marked[method, pairs[0].by].append(pairs[0].measure)
    return dict(marked)
