"""Replies to requests that several documents send: one chat session is part of many histories.

<warehouse>/shared/<step_id>/<request_sha>.json holds the call of the document that came first. A
request is asked at most once per worker; of workers that ask at the same moment the first commits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from pydantic import TypeAdapter
from upath import UPath

from pipeline.place import commit
from pipeline.rows import Call

_KEPT = (None, "truncated")  # problems of replies that are asked for once


class SharedReplies:
    """The shared replies of one step."""

    def __init__(self, folder: UPath) -> None:
        self._folder = folder
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def call(self, request_sha: str, make: Callable[[], Awaitable[Call]]) -> Call:
        """The committed call, or the one that `make` makes, committed."""
        lock = self._locks.setdefault(request_sha, asyncio.Lock())
        async with lock:
            file = self._folder / f"{request_sha}.json"
            if (committed := _load(file)) is not None:
                return committed
            made = await make()
            if made.problem in _KEPT and not commit(file, _json().dump_json(made)):
                return _load(file) or made
            return made


class SharedCopies(SharedReplies):
    """Those of a step, the new ones kept in memory: the warehouse is only read."""

    def __init__(self, warehouse: UPath, step_id: str) -> None:
        super().__init__(warehouse / "shared" / step_id)
        self._made: dict[str, asyncio.Task[Call]] = {}

    async def call(self, request_sha: str, make: Callable[[], Awaitable[Call]]) -> Call:
        if request_sha not in self._made:
            self._made[request_sha] = asyncio.create_task(self._first(request_sha, make))
        return await self._made[request_sha]

    async def _first(self, request_sha: str, make: Callable[[], Awaitable[Call]]) -> Call:
        return _load(self._folder / f"{request_sha}.json") or await make()


def _load(file: UPath) -> Call | None:
    try:
        call: Call = _json().validate_json(file.read_bytes())
        return call
    except FileNotFoundError:
        return None


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)
