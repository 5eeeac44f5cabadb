"""Admission of documents to a worker after crashes: which may be in flight together.

A document that was in flight at a crash is a suspect. Its limit is the number of suspects with the
same limit or a lower one, itself included, that may be in flight together; other documents may run
beside them. Limits halve with each crash (in_flight.py), until a suspect runs alone, with nothing
else in flight at all.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf


class Admission:
    """Admits documents as their limits allow. A suspect that must run alone waits until no other
    document waits, so that the worker is not drained for it while there is work."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._inside, self._waiting = Counter[float](), Counter[float]()  # by limit

    @asynccontextmanager
    async def admitted(self, limit: int | None) -> AsyncIterator[None]:
        """Hold a place in flight inside the context. `limit` None: the document is no suspect."""
        own = limit or inf
        self._waiting[own] += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._may_enter(own))
                self._inside[own] += 1
        finally:
            self._waiting[own] -= 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside[own] -= 1
                self._changed.notify_all()

    def _may_enter(self, own: float) -> bool:
        if own == 1:
            others_waiting = self._waiting.total() - self._waiting[1]
            return not others_waiting and not self._inside.total()
        then = self._inside + Counter({own: 1})
        return not then[1] and all(
            sum(count for other, count in then.items() if other <= limit) <= limit
            for limit in then
        )  # fmt: skip
