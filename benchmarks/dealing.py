"""Simulate how documents are distributed to more engines than one machine has: events, no clock, no
Ray.

A page is a call that waits for the previous page's, and a gist that waits for the last page; each
occupies one of an engine's sequences for about a second. Ray Data gives the next block to the
worker that has the fewest.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from pipeline.cluster.ray_data import blocks, words_per_block
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.worker import DOCUMENTS_OVER_SLOTS

_WORDS = 1200.0  # of work on a page: it is read twice
_CALL = (0.8, 1.2)  # seconds, drawn evenly
_ROOM = 1.25  # requests in flight per sequence of an engine


@dataclass
class _Engine:
    sequences: int
    busy: int = 0
    num_documents: int = 0  # admitted
    num_blocks: int = 0
    waiting: deque[int] = field(default_factory=deque)  # not admitted yet
    ready: list[tuple[int, int, int, bool]] = field(default_factory=list)  # calls, by rank


class Dealing:
    """One simulated phase. `pages`: of each document, in the order in which they are
    distributed."""

    def __init__(self, pages: Sequence[int], num_engines: int, sequences: int) -> None:
        work = work_on([DocumentWork(str(n), (), _WORDS * own, 0) for n, own in enumerate(pages)])
        found = [*blocks(work.documents, words_per_block(work, num_engines))]
        self._blocks = deque([int(name) for name, *_ in block] for block in found)
        self._most_documents = int(_ROOM * sequences) + DOCUMENTS_OVER_SLOTS
        self._most_blocks = min(self._most_documents, -(-len(found) // num_engines))
        self._engines = [_Engine(sequences) for _ in range(num_engines)]
        self._pages, self._pages_left = pages, [*pages]
        self._calls_left = [2 * own for own in pages]
        self._block_of: dict[int, list[int]] = {}  # document -> its block's documents in flight
        self._ranks, self._numbers, self._draw = count(), count(), Random(7)
        self._rank: dict[int, int] = {}
        self._events: list[tuple[float, int, int, int, bool]] = []  # ends of calls

    def seconds(self) -> float:
        """The makespan."""
        now = 0.0
        self._deal(now)
        while self._events:
            now, _, number, document, is_page = heapq.heappop(self._events)
            engine = self._engines[number]
            engine.busy -= 1
            self._calls_left[document] -= 1
            if is_page:
                self._follow(engine, document)
            if not self._calls_left[document]:
                self._finish(engine, document, now)
            self._admit(number, now)
        return now

    def _follow(self, engine: _Engine, document: int) -> None:
        """Add the calls that waited for this page: the next page, or all gists."""
        self._pages_left[document] -= 1
        is_page = self._pages_left[document] > 0
        for _ in range(1 if is_page else self._pages[document]):
            call = (self._rank[document], next(self._numbers), document, is_page)
            heapq.heappush(engine.ready, call)

    def _finish(self, engine: _Engine, document: int, now: float) -> None:
        engine.num_documents -= 1
        block = self._block_of.pop(document)
        block.remove(document)
        if not block:
            engine.num_blocks -= 1
            self._deal(now)

    def _deal(self, now: float) -> None:
        for number in self._free():
            block = self._blocks.popleft()
            self._engines[number].num_blocks += 1
            self._engines[number].waiting.extend(block)
            in_flight = [*block]
            self._block_of.update(dict.fromkeys(block, in_flight))
            self._admit(number, now)

    def _free(self) -> Iterator[int]:
        """The engine that gets the next block, while there are blocks and capacity."""
        while self._blocks:
            numbers = range(len(self._engines))
            number = min(numbers, key=lambda one: self._engines[one].num_blocks)
            if self._engines[number].num_blocks >= self._most_blocks:
                return
            yield number

    def _admit(self, number: int, now: float) -> None:
        engine = self._engines[number]
        while engine.waiting and engine.num_documents < self._most_documents:
            document = engine.waiting.popleft()
            engine.num_documents += 1
            self._rank[document] = next(self._ranks)
            call = (self._rank[document], next(self._numbers), document, True)
            heapq.heappush(engine.ready, call)
        while engine.ready and engine.busy < engine.sequences:
            _, _, document, is_page = heapq.heappop(engine.ready)
            engine.busy += 1
            ends = now + self._draw.uniform(*_CALL)
            heapq.heappush(self._events, (ends, next(self._numbers), number, document, is_page))


def shortest(pages: Sequence[int], num_engines: int, sequences: int) -> float:
    """Seconds that no schedule can beat, on average: all calls spread evenly, or the longest
    document's chain and its last gist."""
    return max(2 * sum(pages) / (num_engines * sequences), max(pages) + 1)
