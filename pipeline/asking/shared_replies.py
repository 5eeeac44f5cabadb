"""Replies shared by documents that send the same request: one chat session is in many histories.

<warehouse>/shared/<step_id>/<request_sha>.json holds the call of the first document. A worker sends
a request at most once; of workers that send it at the same time, the first to commit wins.
"""

import asyncio
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from weakref import WeakValueDictionary

from upath import UPath

from pipeline.core.calls import call_from_json, call_to_json
from pipeline.core.rows import Call
from pipeline.files.place import commit, read, write

Make = Callable[[], Awaitable[Call]]
Slot = AbstractAsyncContextManager[None]
_KEPT = (None, "truncated")  # problems of replies that are shared; after others each asks again


class SharedReplies:
    """The shared replies of one step."""

    def __init__(self, folder: UPath) -> None:
        self._folder = folder
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def call(self, request_sha: str, make: Make, slot: Slot) -> Call:
        """The committed call; if there is none, the call that `make` returns, which is committed.
        `slot` is held from the request until then."""
        lock = self._locks.setdefault(request_sha, asyncio.Lock())
        async with lock:
            file = self._folder / f"{request_sha}.json"
            if (committed := await to_thread(_load, file)) is not None:
                return committed
            async with slot:
                return await self._committed(file, await make())

    async def _committed(self, file: UPath, made: Call) -> Call:
        """`made`, or the call of another worker that committed first."""
        content = call_to_json(made)
        if made.problem in _KEPT and not await to_thread(commit, file, content):
            if (committed := await to_thread(_load, file)) is not None:
                return committed
            await to_thread(write, file, content)  # instead of a damaged one
        return made


class SharedCopies(SharedReplies):
    """Shared replies that keep new calls in memory: the warehouse is only read."""

    def __init__(self, warehouse: UPath, step_id: str) -> None:
        super().__init__(warehouse / "shared" / step_id)
        self._made: dict[str, asyncio.Task[Call]] = {}

    async def call(self, request_sha: str, make: Make, slot: Slot) -> Call:
        if request_sha not in self._made:
            self._made[request_sha] = asyncio.create_task(self._first(request_sha, make, slot))
        return await self._made[request_sha]

    async def _first(self, request_sha: str, make: Make, slot: Slot) -> Call:
        if committed := await to_thread(_load, self._folder / f"{request_sha}.json"):
            return committed
        async with slot:
            return await make()


def _load(file: UPath) -> Call | None:
    """The committed call; None if there is none, or it cannot be read."""
    try:
        return call_from_json(read(file))
    except FileNotFoundError:
        return None
