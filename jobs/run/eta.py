"""Estimate the time left in a phase: words left by words per second.

Documents are weighted, not counted: they differ a hundredfold in length, and the longest come
first.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline.work.input_hashes import DocumentKey
from pipeline.work.units import DocumentWork
from pipeline.worker.document_progress import weight

_SECONDS_OF_RATE = 20.0  # window of the rate, or the later half of the phase if that is longer


def weights(
    documents: Sequence[DocumentWork], keys: Sequence[DocumentKey], asking: Collection[str]
) -> list[tuple[str, float]]:
    """The document_id and the words of each of `documents`: those that its pending units read.
    `asking`: the ids of the steps that ask a model."""
    words = {key.document_id: key.num_words for key in keys}
    found = []
    for document_id, units in documents:
        pending = [unit for unit in units if not unit.is_done]
        own = sum(weight(unit, words[document_id], unit.step_id in asking) for unit in pending)
        found.append((document_id, own))
    return found


class Eta:
    """The estimate for one phase. `planned`: the document_id and the words of each document in the
    execution."""

    def __init__(self, planned: Sequence[tuple[str, float]]) -> None:
        self._all = sum(words for _, words in planned)
        # A document may be executed in several parts, each a chunk of its questions, which
        # summaries do not distinguish.
        self._left = Counter(document_id for document_id, _ in planned)  # parts not finished
        self._words: dict[str, float] = defaultdict(float)
        for document_id, own in planned:
            self._words[document_id] += own / self._left[document_id]
        self._finished = self._in_flight = 0.0  # words done, in either kind of document
        self._seen: deque[tuple[float, float]] = deque()  # (clock, words done)

    def finished(self, document_id: str) -> None:
        """Record that a document, or a part of it, is finished."""
        self._left[document_id] -= 1
        self._finished += self._words[document_id]

    def in_flight(self, inside: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Record how far the documents in flight are, as `DocumentProgress.state` has it. Returns
        them but for those that are finished: heartbeats are late."""
        found = [one for one in inside if self._left[one["document_id"]] > 0]
        self._in_flight = sum(self._words[one["document_id"]] * one["share"] for one in found)
        return found

    def look(self, now: float) -> None:
        """Record what is done at `now`, in seconds. The clock starts with the first words, as
        engines take minutes to start."""
        if not self._seen and not self._done:
            return
        self._seen.append((now, self._done))
        while len(self._seen) > 2 and now - self._seen[1][0] > max(
            _SECONDS_OF_RATE, (now - self._seen[0][0]) / 2
        ):
            self._seen.popleft()

    @property
    def _done(self) -> float:
        return self._finished + self._in_flight

    @property
    def share(self) -> float:
        """The share of the words that is done, from 0 to 1."""
        return min(self._done / self._all, 1.0) if self._all else 0.0

    @property
    def seconds(self) -> float | None:
        """The estimated seconds until the phase ends; None while there is no basis for it."""
        if len(self._seen) < 2:
            return None
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        if now <= began or done <= before:
            return None
        return max(self._all - done, 0.0) * (now - began) / (done - before)
