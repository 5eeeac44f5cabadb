"""Estimate the time left in a phase: remaining work by words, at the cost of finished work.

Documents are weighted, not counted: they differ a hundredfold in length, and the longest come
first.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline.work.units import DocumentKey, DocumentWork
from pipeline.worker.document_progress import weight

REPLY_COSTS = 10.0  # the cost of a reply token, in prompt tokens
_SECONDS_OF_RATE = 20.0  # window of the rate, or the later half of the phase if that is longer


def cost(usage: Mapping[str, Any], reply_costs: float) -> float:
    """The cost of calls in uncached prompt tokens; `usage`: usage counters or a summary.

    A reply token costs as much as `reply_costs` prompt tokens.
    """
    return float(
        usage["prompt_tokens"] - usage["cached_tokens"] + reply_costs * usage["reply_tokens"]
    )


def weights(
    documents: Sequence[DocumentWork], keys: Sequence[DocumentKey], asking: Collection[str]
) -> list[tuple[str, float]]:
    """The document_id and weight of each of `documents`: that of its pending units. `asking`: the
    ids of the steps that ask a model."""
    words = {key.document_id: key.num_words for key in keys}
    return [
        (
            document_id,
            sum(
                weight(unit, words[document_id], unit.step_id in asking)
                for unit in units
                if not unit.is_done
            ),
        )
        for document_id, units in documents
    ]


class Eta:
    """The estimate for one phase.

    `planned`: the document_id and weight of each document in the execution. The cost of a weight is
    inferred from finished documents, or from those in flight if more of them is done: a single long
    document is in flight all the time.
    """

    def __init__(self, planned: Sequence[tuple[str, float]]) -> None:
        self._all = sum(weight for _, weight in planned)
        # A document may be executed in several parts, each a chunk of its questions, which
        # summaries do not distinguish.
        self._left = Counter(document_id for document_id, _ in planned)  # parts not finished
        self._planned: dict[str, float] = defaultdict(float)
        for document_id, own in planned:
            self._planned[document_id] += own / self._left[document_id]
        # Of finished documents: planned weight, cost, and cost had no call been replayed.
        self._weight = self._took = self._full = 0.0
        # Of documents in flight: the weight done, and that part of it that was not replayed.
        self._begun = self._begun_asked = 0.0
        self._seen: deque[tuple[float, float]] = deque()  # (clock, cost so far)

    def finished(self, document_id: str, took: float, spared: float = 0.0) -> None:
        """Record that an item of the document is finished, at the cost `took`; replayed calls have
        `spared` the rest."""
        self._left[document_id] -= 1
        self._weight += self._planned[document_id]
        self._took += took
        self._full += took + spared

    def in_flight(self, inside: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Record how far the documents in flight are, as `DocumentProgress.state` has it. Returns
        them but for those that are finished: heartbeats are late."""
        found = [one for one in inside if self._left[one["document_id"]] > 0]
        self._begun = sum(self._planned[one["document_id"]] * one["share"] for one in found)
        self._begun_asked = sum(
            self._planned[one["document_id"]] * one["asked_share"] for one in found
        )
        return found

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
        """The estimated cost of the whole phase; None until part of a document is done."""
        spent = self._seen[-1][1] if self._seen else 0.0
        if self._begun_asked > self._weight and spent > self._took:
            ratio = (spent - self._took) / self._begun_asked
            return spent + ratio * max(self._all - self._weight - self._begun, 0.0)
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
        """The estimated seconds until the phase ends; None while there is no basis for it."""
        total = self.total
        if total is None or len(self._seen) < 2:
            return None
        (began, before), (now, spent) = self._seen[0], self._seen[-1]
        rate = (spent - before) / (now - began) if now > began else 0.0
        return max(total - spent, 0.0) / rate if rate else None
