"""Estimate the time left in a phase: words left by words per second.

Documents are weighted, not counted: they differ a hundredfold in length, and the longest come
first.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_SECONDS_OF_RATE = 20.0  # window of the rate, or the later half of the phase if that is longer
_SECONDS_LATE = 15.0  # of a heartbeat, which may still have a document that is finished


class Eta:
    """The estimate for one phase. `words`: of all documents in the execution."""

    def __init__(self, words: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.words = words
        self._clock = clock
        self._finished = self._in_flight = 0.0  # words done, in either kind of document
        self._finished_at = deque[tuple[float, str]]()  # documents, or parts, of the last seconds
        self._seen: deque[tuple[float, float]] = deque()  # (clock, words done)

    def finished(self, document_id: str, words: float) -> None:
        """Record that a document, or a part of it, of so many words is finished."""
        self._finished_at.append((self._clock(), document_id))
        self._finished += words

    def in_flight(self, inside: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Record how far the documents in flight are, as `DocumentProgress.state` has it. Returns
        them but for those that have just been finished: heartbeats are late."""
        while self._finished_at and self._clock() - self._finished_at[0][0] > _SECONDS_LATE:
            self._finished_at.popleft()
        over = Counter(document_id for _, document_id in self._finished_at)
        found = []
        for one in sorted(inside, key=lambda one: -one["share"]):  # the part that is finished first
            over[one["document_id"]] -= 1
            if over[one["document_id"]] < 0:
                found.append(one)
        self._in_flight = sum(one["words"] * one["share"] for one in found)
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
        return min(self._done / self.words, 1.0) if self.words else 0.0

    @property
    def seconds(self) -> float | None:
        """The estimated seconds until the phase ends; None while there is no basis for it."""
        if len(self._seen) < 2:
            return None
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        if now <= began or done <= before:
            return None
        return max(self.words - done, 0.0) * (now - began) / (done - before)
