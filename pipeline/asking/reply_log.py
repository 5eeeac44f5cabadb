"""The log of one unit's replies: the places where the reply to a request may already be."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.asking.shared_replies import Make, SharedReplies, Slot
from pipeline.core.calls import UNANSWERED, CallKey, call_key
from pipeline.core.rows import Call, Record

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
    """

    calls: Sequence[Call] = ()
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

    async def made(self, make: Make, slot: Slot, shared_name: str | None) -> Call:
        """The call that `make` returns, kept, or with a `shared_name` another document's.

        `slot` is held until the call is kept: a process that dies loses no more calls than it has
        slots.
        """
        if self.shared is not None and shared_name is not None:
            return await self.shared.call(shared_name, make, slot)
        async with slot:
            call = await make()
            if self.keep:
                await self.keep(call)
            return call
