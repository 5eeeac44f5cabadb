"""Every method of a run against every other by one measure, or against the same one of another run:
the differences to any baseline that a reader may choose."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.compare.paired_values import RunValues, Value
from jobs.statistics.paired_test import Paired, holm, paired, swapped


@dataclass(frozen=True)
class Against:
    """A method against a baseline, on the questions that both have a value of: `figures` are of the
    method minus the baseline; `p_holm`: adjusted over the methods of this baseline."""

    method: str
    figures: Paired
    p_holm: float


def against_each(run: RunValues, metric: str) -> dict[str, list[dict[str, Any]]]:
    """By baseline, the other methods in the run's order as rows of `Against`; without those that
    have no question in common with it."""
    values = {method: run.values(method, metric) for method in run.methods}
    figures: dict[tuple[str, str], Paired] = {}
    for place, a in enumerate(run.methods):
        for b in run.methods[place + 1 :]:
            both = [key for key in sorted(values[a]) if key in values[b]]
            if both:
                found = _paired([values[a][key] for key in both], [values[b][key] for key in both])
                figures[a, b], figures[b, a] = found, swapped(found)
    return {baseline: _rows(figures, baseline, run.methods) for baseline in run.methods
            if any(b == baseline for _, b in figures)}  # fmt: skip


def against_run(run: RunValues, other: RunValues, metric: str) -> list[dict[str, Any]]:
    """Each method of a run against the same one of another run, in the run's order as rows of
    `Against`; without those that have no question in common, which is one of the same content."""
    figures: dict[str, Paired] = {}
    for method in (method for method in run.methods if method in other.methods):
        a, b = run.values(method, metric), other.values(method, metric)
        same = [key for key in sorted(a) if key in b and a[key].asked == b[key].asked]
        if same:
            figures[method] = _paired([a[key] for key in same], [b[key] for key in same])
    return _adjusted(figures)


def _paired(a: Sequence[Value], b: Sequence[Value]) -> Paired:
    documents = [one.document_id for one in a]
    return paired([one.value for one in a], [one.value for one in b], documents)


def _rows(
    figures: dict[tuple[str, str], Paired], baseline: str, methods: Sequence[str]
) -> list[dict[str, Any]]:
    own = {method: figures[method, baseline] for method in methods if (method, baseline) in figures}
    return _adjusted(own)


def _adjusted(figures: dict[str, Paired]) -> list[dict[str, Any]]:
    adjusted = holm([found.p for found in figures.values()])
    return [
        asdict(Against(method, found, p))
        for (method, found), p in zip(figures.items(), adjusted, strict=True)
    ]
