"""Means corrected for the mistakes of the judge who made them, with intervals."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from jobs.statistics.means import LEAST_DOCUMENTS

Limits = tuple[float, float]
Share = tuple[float, float]
"""A share, 0 to 1, and the size of the sample that it is of."""
_Z = NormalDist().inv_cdf(0.975)


def exact_interval(share: float, n: int) -> Limits:
    """The 95% interval of Clopper and Pearson (1934) of a share of `n`, both 0 to 1. The share may
    be a mean of shares: share x n need not be a whole number."""
    from scipy.stats import beta  # imported here, as it takes seconds

    k = share * n
    low = float(beta.ppf(0.025, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
    return low, high


def rogan_gladen(observed: float, sensitivity: float, specificity: float) -> float:
    """The true share of right answers where a judge accepts the share `observed` (Rogan and Gladen
    1978), 0 to 1. Sensitivity + specificity must be above 1."""
    found = (observed + specificity - 1) / (sensitivity + specificity - 1)
    return min(1.0, max(0.0, found))


def corrected_interval(observed: Share, sensitivity: Share, specificity: Share) -> Limits:
    """The 95% interval of `rogan_gladen`, to which all three samples contribute.

    Lang and Reiczigel (2014, Preventive Veterinary Medicine 113, 13-22): Agresti and Coull's shares
    in the formula of Rogan and Gladen, its standard error, and a shift towards the middle.
    """
    share, n = _added(*observed, _Z**2)
    se, n_se = _added(*sensitivity, 2)
    sp, n_sp = _added(*specificity, 2)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    found = (share + sp - 1) / (se + sp - 1)
    variance = share * (1 - share) / n + found**2 * of_se + (1 - found) ** 2 * of_sp
    middle = found + 2 * _Z**2 * (found * of_se - (1 - found) * of_sp)
    half = _Z * math.sqrt(variance) / abs(se + sp - 1)
    return max(0.0, min(1.0, middle - half)), min(1.0, max(0.0, middle + half))


def _added(share: float, n: float, more: float) -> tuple[float, float]:
    """The share and size of a sample with `more` answers more, half of them accepted."""
    return (share * n + more / 2) / (n + more), n + more


def effective_size(accepted: Sequence[float], counts: Sequence[int]) -> float | None:
    """The number of independent answers whose share accepted would vary as much as this one does,
    where documents are drawn (Kish 1965); at most the answers there are.

    `accepted` and `counts`: of each document. None below 10 documents, as for other intervals.
    """
    if len(counts) < LEAST_DOCUMENTS:
        return None
    n = sum(counts)
    share = sum(accepted) / n
    squares = sum((a - share * m) ** 2 for a, m in zip(accepted, counts, strict=True))
    variance = squares / n**2 * len(counts) / (len(counts) - 1)
    return min(n, share * (1 - share) / variance) if variance else n
