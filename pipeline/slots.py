"""What a worker takes on at once: requests by slots, documents by how much text they are."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class Slots:
    """`size` slots. Who waits gets the next free one by `rank`, lowest first, then by arrival."""

    def __init__(self, size: int) -> None:
        self.num_finished = 0
        self._free = size
        self._arrivals = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def one(self, rank: int) -> AsyncIterator[None]:
        """Within it, one slot is taken."""
        await self._enter(rank)
        try:
            yield
        finally:
            self.num_finished += 1
            self._leave()

    async def _enter(self, rank: int) -> None:
        if self._free:  # then nobody waits
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot had been handed over just before
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Room:
    """Room for things of a total weight; first come, first in. One that is heavier than all of it
    is let in alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._door = asyncio.Lock()  # fair
        self._somebody_left = asyncio.Event()

    @asynccontextmanager
    async def held(self, weight: int) -> AsyncIterator[None]:
        """Within it, the room is taken."""
        weight = min(weight, self._size)
        async with self._door:
            while self._taken + weight > self._size:
                self._somebody_left.clear()
                await self._somebody_left.wait()
            self._taken += weight
        try:
            yield
        finally:
            self._taken -= weight
            self._somebody_left.set()
