"""Which rows of a report are the best of a column."""

from collections.abc import Mapping, Sequence

from jobs.means import Mean
from pipeline.stage import Column


def best_of(
    rows: Sequence[tuple[str | None, Mapping[str, Mean]]], columns: Sequence[Column]
) -> list[tuple[str, ...]]:
    """For each row, its group and its means, the measures of which it has the best mean.

    Only of columns in which more is better, and among the rows of its group that are over the most
    answers: a mean over fewer is over other questions. Floors and ceilings take part as all methods
    do. All that print alike are best; where all rows do, or one is alone, none is.
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
    """The places of the highest means, as printed, of those over the most answers."""
    most = max((mean.n for mean in means.values()), default=0)
    shown = {place: f"{mean.mean:.1f}" for place, mean in means.items()
             if mean.mean is not None and mean.n == most}  # fmt: skip
    if len({*shown.values()}) < 2:
        return []
    highest = max(shown.values(), key=float)
    return [place for place, text in shown.items() if text == highest]
