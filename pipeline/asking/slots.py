"""A worker's limits: slots for requests in flight, capacity for the text of documents in flight."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from pipeline.core.errors import StorageError


class Slots:
    """`size` slots; a free one goes to the waiting request of lowest `rank`, then by arrival. Once
    storage refuses a reply for good, no more slots are given: further replies could not be kept."""

    def __init__(self, size: int) -> None:
        self._free = size
        self.refusal: StorageError | None = None
        self._arrivals = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def one(self, rank: int) -> AsyncIterator[None]:
        """Hold one slot inside the context. Raises the StorageError of an earlier holder."""
        await self._enter(rank)
        try:
            if self.refusal:
                raise self.refusal
            yield
        except StorageError as error:
            self.refusal = error
            raise
        finally:
            self._leave()

    async def _enter(self, rank: int) -> None:
        if self._free:  # a slot is free only if no request waits
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot was handed over just before
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Capacity:
    """A limit on the total weight in flight, first come, first served. A document heavier than the
    limit is admitted alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._queue = asyncio.Lock()  # fair
        self._released = asyncio.Event()

    @asynccontextmanager
    async def held(self, weight: int) -> AsyncIterator[None]:
        weight = min(weight, self._size)
        async with self._queue:
            while self._taken + weight > self._size:
                self._released.clear()
                await self._released.wait()
            self._taken += weight
        try:
            yield
        finally:
            self._taken -= weight
            self._released.set()
