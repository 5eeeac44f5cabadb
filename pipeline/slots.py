"""Slots in front of an engine: so many requests at once, earlier-admitted documents first."""

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
