"""When a phase will be through: remaining work weighed by words, at the cost of what is finished.

Documents differ a hundredfold in length and the longest come first, so counting them says little.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.units import DocumentKey, Item, Unit

REPLY_COSTS = 10.0  # a token of a reply, in tokens of a prompt
_SECONDS_OF_RATE = 20.0  # or the later half of what was seen, so that a slow start is forgotten


def cost(usage: Mapping[str, Any], reply_costs: float) -> float:
    """What calls cost an engine, in prompt tokens that it reads; of usage counters or a summary.

    A token of a reply takes it as long as `reply_costs` of a prompt.
    """
    return float(
        usage["prompt_tokens"] - usage["cached_tokens"] + reply_costs * usage["reply_tokens"]
    )


def weights(items: Sequence[Item], keys: Sequence[DocumentKey]) -> list[tuple[str, float]]:
    """Each item's document and its weight, of which only ratios mean anything: a memory stage reads
    the document once, a question some tenths of it."""
    words = {key.document_id: key.num_words for key in keys}
    return [
        (document_id, sum(_weight(unit, words[document_id]) for unit in units if not unit.is_done))
        for document_id, units in items
    ]


def _weight(unit: Unit, num_words: int) -> float:
    return 0.2 * len(unit.inputs) * num_words + 300 if unit.inputs else num_words + 1


class Eta:
    """Of one phase. `planned` has every item's document and weight; what the first documents cost
    tells what a weight comes to."""

    def __init__(self, planned: Sequence[tuple[str, float]]) -> None:
        self._all = sum(weight for _, weight in planned)
        # A document may be several items, each a chunk of its questions; they come back unnamed.
        items = Counter(document_id for document_id, _ in planned)
        self._planned: dict[str, float] = defaultdict(float)
        for document_id, weight in planned:
            self._planned[document_id] += weight / items[document_id]
        self._weight = self._took = 0.0  # of the documents that are through
        self._seen: deque[tuple[float, float]] = deque()

    def finished(self, document_id: str, took: float) -> None:
        """An item of the document is through."""
        self._weight += self._planned[document_id]
        self._took += took

    def spent(self, cost_so_far: float, now: float) -> None:
        """What all workers have done by now, of documents in flight as well."""
        if not self._seen and not cost_so_far:
            return  # engines start
        self._seen.append((now, cost_so_far))
        while len(self._seen) > 2 and now - self._seen[1][0] > max(
            _SECONDS_OF_RATE, (now - self._seen[0][0]) / 2
        ):
            self._seen.popleft()

    @property
    def total(self) -> float | None:
        """What the phase will have cost; null before the first document is through."""
        if not self._weight:
            return None
        ratio = self._took / self._weight
        return self._took + ratio * max(self._all - self._weight, 0.0)

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        total = self.total
        return min(self._seen[-1][1] / total, 1.0) if total and self._seen else 0.0

    @property
    def seconds(self) -> float | None:
        """Until the phase is through; null while nothing says so."""
        total = self.total
        if total is None or len(self._seen) < 2:
            return None
        (began, before), (now, spent) = self._seen[0], self._seen[-1]
        rate = (spent - before) / (now - began) if now > began else 0.0
        return max(total - spent, 0.0) / rate if rate else None
