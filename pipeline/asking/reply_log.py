"""The log of one unit's replies: the places where the reply to a request may already be.

Replies are shared by documents that send the same request: one chat session is in many histories.
<warehouse>/shared/<step_id>/<request_sha>.json holds the call of the first document. A worker sends
a request at most once; of workers that send it at the same time, the first to commit wins."""

import asyncio
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakValueDictionary

from upath import UPath

from pipeline.asking.call_json import call_from_json, call_to_json
from pipeline.core.calls import UNANSWERED, Call, CallKey, call_key
from pipeline.core.rows import Record
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


IsReadable = Callable[[Call], bool]
_MADE_OF_GOOD_REPLIES = ("out_of_range",)  # problems of rows whose calls have none
_OF_SUBJECT = ("question_id", "page_index", "turn", "reference_index")


class EarlierCalls:
    """The calls of the previous attempt at a unit. A retry replays those with a good reply.

    `problems`: the rows of that attempt that have a problem.
    """

    def __init__(self, calls: Sequence[Call] = (), problems: Sequence[Record] = ()) -> None:
        self._calls = _by_key(calls)
        self._problems = problems

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __contains__(self, key: CallKey) -> bool:
        return key in self._calls

    def good(self, key: CallKey, is_readable: IsReadable) -> Call | None:
        """The call with this key, to be replayed; None if there is none, or if it is sent again: it
        got no reply, or a row about the same subject has a problem that this call may have
        caused."""
        call = self._calls.get(key)
        if call is None or call.problem in UNANSWERED:
            return None
        of_rows = {row.problem for row in self._problems if _are_about_the_same(row, call)}
        if of_rows & set(_MADE_OF_GOOD_REPLIES):
            return None
        is_good = call.problem is None and is_readable(call)
        return call if is_good or not of_rows else None


def _by_key(calls: Sequence[Call]) -> dict[CallKey, Call]:
    return {call_key(call.request_sha, call): call for call in calls}


def _are_about_the_same(row: Record, call: Call) -> bool:
    pairs = [(getattr(row, name, None), getattr(call, name)) for name in _OF_SUBJECT]
    return all(own == asked for own, asked in pairs if None not in (own, asked))


@dataclass(frozen=True, kw_only=True)
class ReplyLog:
    """A reply is looked for in this order: `calls`, those of this attempt at the unit (see
    `Unit.attempt`), committed or from the journal of a process that died; `earlier`, the good ones
    of the previous attempt; `shared`, those of other documents to the same request. Only then the
    engine is asked, and `keep` is called with the new call, unless it is shared.

    `is_committed`: true if no call of this attempt is to be committed any more.
    """

    calls: Sequence[Call] = ()
    is_committed: bool = False
    attempt: int = 1
    earlier: EarlierCalls = field(default_factory=EarlierCalls)
    shared: SharedReplies | None = None
    keep: Callable[[Call], Awaitable[None]] | None = None

    @cached_property
    def _own(self) -> dict[CallKey, Call]:
        return _by_key(self.calls)

    def find(self, key: CallKey, is_readable: IsReadable) -> Call | None:
        """The unit's own call with this key."""
        return self._own.get(key) or self.earlier.good(key, is_readable)

    @property
    def is_empty(self) -> bool:
        """True if the unit has no calls yet, of this attempt or the previous one."""
        return not self._own and not self.earlier
