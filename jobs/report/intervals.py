"""Uncertainty of a mean: 95% interval over documents, standard deviation over repeats."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST_DOCUMENTS = 10
RESAMPLES = 2000


def interval(sums: Sequence[Sequence[float]], counts: Sequence[int]) -> tuple[float, float] | None:
    """The 95% percentile interval of a mean, sum / count, or of the geometric mean of several (a
    list of sums each), documents drawn with replacement.

    One sum and one count per document. Questions about the same document are correlated, so whole
    documents are drawn (cluster bootstrap). None below 10 documents.
    """
    if len(counts) < LEAST_DOCUMENTS:
        return None
    from scipy.stats import bootstrap  # imported here, as it takes seconds

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal documents, whose interval is a point
        found = bootstrap(
            (*np.asarray(sums, float), np.asarray(counts, float)),
            _geometric_mean,
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return float(found.low), float(found.high)


def _geometric_mean(*sums_and_counts: Any, axis: int) -> Any:
    *sums, counts = (part.sum(axis=axis) for part in sums_and_counts)
    return np.prod([s / counts for s in sums], axis=0) ** (1 / len(sums))


def sd(means: Sequence[float]) -> float | None:
    """The standard deviation of the repeats' means (n - 1). None for a single repeat."""
    return float(np.std(means, ddof=1)) if len(means) > 1 else None
