"""Estimate the time left in a phase: remaining work by words, at the cost of finished work.

Documents are weighted, not counted: they differ a hundredfold in length, and the longest come
first.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.units import DocumentKey, Item, Unit

REPLY_COSTS = 10.0  # the cost of a reply token, in prompt tokens
_SECONDS_OF_RATE = 20.0  # window of the rate, or the later half of the phase if that is longer


def cost(usage: Mapping[str, Any], reply_costs: float) -> float:
    """The cost of calls in uncached prompt tokens; `usage`: usage counters or a summary.

    A reply token costs as much as `reply_costs` prompt tokens.
    """
    return float(
        usage["prompt_tokens"] - usage["cached_tokens"] + reply_costs * usage["reply_tokens"]
    )


def weights(items: Sequence[Item], keys: Sequence[DocumentKey]) -> list[tuple[str, float]]:
    """Each item's document_id and weight, of which only ratios are meaningful: a memory stage reads
    the document once, a question some tenths of it."""
    words = {key.document_id: key.num_words for key in keys}
    return [
        (document_id, sum(_weight(unit, words[document_id]) for unit in units if not unit.is_done))
        for document_id, units in items
    ]


def _weight(unit: Unit, num_words: int) -> float:
    return 0.2 * len(unit.inputs) * num_words + 300 if unit.inputs else num_words + 1


class Eta:
    """The estimate for one phase.

    `planned`: every item's document_id and weight. What a weight costs is inferred from finished
    documents.
    """

    def __init__(self, planned: Sequence[tuple[str, float]]) -> None:
        self._all = sum(weight for _, weight in planned)
        # A document may be several items, each a chunk of its questions; summaries do not tell
        # them apart.
        items = Counter(document_id for document_id, _ in planned)
        self._planned: dict[str, float] = defaultdict(float)
        for document_id, weight in planned:
            self._planned[document_id] += weight / items[document_id]
        # Of finished documents: planned weight, cost, and cost had no call been replayed.
        self._weight = self._took = self._full = 0.0
        self._seen: deque[tuple[float, float]] = deque()  # (clock, cost so far)

    def finished(self, document_id: str, took: float, spared: float = 0.0) -> None:
        """Record that an item of the document is finished, at the cost `took`; replayed calls have
        `spared` the rest."""
        self._weight += self._planned[document_id]
        self._took += took
        self._full += took + spared

    def spent(self, cost_so_far: float, now: float) -> None:
        """Record the cost of all workers so far, including documents in flight; `now`: seconds."""
        if not self._seen and not cost_so_far:
            return  # engines are starting
        self._seen.append((now, cost_so_far))
        while len(self._seen) > 2 and now - self._seen[1][0] > max(
            _SECONDS_OF_RATE, (now - self._seen[0][0]) / 2
        ):
            self._seen.popleft()

    @property
    def total(self) -> float | None:
        """The estimated cost of the whole phase; null before the first document is finished."""
        if not self._weight:
            return None
        ratio = self._full / self._weight
        return self._took + ratio * max(self._all - self._weight, 0.0)

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1."""
        total = self.total
        return min(self._seen[-1][1] / total, 1.0) if total and self._seen else 0.0

    @property
    def seconds(self) -> float | None:
        """The estimated seconds until the phase ends; null before there is any basis for it."""
        total = self.total
        if total is None or len(self._seen) < 2:
            return None
        (began, before), (now, spent) = self._seen[0], self._seen[-1]
        rate = (spent - before) / (now - began) if now > began else 0.0
        return max(total - spent, 0.0) / rate if rate else None
