"""Agreement of two raters beyond chance."""

from collections import Counter
from collections.abc import Mapping


def percent(confusion: Mapping[tuple[str, str], int]) -> float | None:
    """The share of answers with the same label from both, 0-100; null without any. The keys are the
    labels of the one and the other."""
    total = sum(confusion.values())
    return 100 * sum(n for (a, b), n in confusion.items() if a == b) / total if total else None


def kappa(confusion: Mapping[tuple[str, str], int]) -> float | None:
    """Cohen's kappa (1960), unweighted: (p - e) / (1 - e), p the observed agreement and e what two
    raters with the same shares of labels would have by chance. Null where e is 1 or without any."""
    total = sum(confusion.values())
    ours, theirs = Counter[str](), Counter[str]()
    for (a, b), n in confusion.items():
        ours[a] += n
        theirs[b] += n
    same = sum(n for (a, b), n in confusion.items() if a == b)
    by_chance = sum(ours[label] * theirs[label] for label in ours)  # of total squared
    if by_chance == total * total:
        return None
    return (same * total - by_chance) / (total * total - by_chance)
