"""The rows of one step of a document, while its stage still makes them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any


class RowStream:
    """Rows in the order in which they are made. Any number of stages read it, each from its first
    row to its end; only the committed rows are certain, so what is made of these is compared with
    them before it is committed."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._is_over = False
        self._changed = asyncio.Event()

    def add(self, row: Any) -> None:
        """Hand a row on to all that read the stream."""
        self.rows.append(row)
        self._wake()

    def end(self) -> None:
        """No row follows."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def is_begun(self) -> bool:
        """True once there is a row and more may follow; false if it ends before."""
        if not self.rows and not self._is_over:
            await self._changed.wait()
        return not self._is_over

    async def __aiter__(self) -> AsyncIterator[Any]:
        place = 0
        while place < len(self.rows) or not self._is_over:
            if place == len(self.rows):
                await self._changed.wait()
                continue
            yield self.rows[place]
            place += 1
