"""The replies that a unit has already, and those that it keeps.

A reply is looked for in the unit's committed calls, in its journal, among the good calls of the
previous attempt at it, and, where documents may send the same request, in the shared replies. Only
then an engine is asked.

The journal has the finished calls of an open unit, written as they arrive, and replayed after a
crash of the process: <warehouse>/journal/<step_id>/<unit>.<attempt>.<number>.jsonl, a Call as JSON
per line. A file is only ever written by the process that made it, and the numbers leave no gap:
most units have none, which a single look shows. Locally each call is appended at once: the kernel
keeps what a killed process has written (it is not synced: after a power cut some calls are sent
again). On object stores a file holds 20 calls, or those of 30 seconds, and is one PUT. A call that
cannot be written for good ends the run, so that no others are paid for in vain; one that cannot be
read is sent again.

Shared are replies of documents that send the same request: one chat session is in many histories.
<warehouse>/shared/<step_id>/<request_sha>.json holds the call of the first document. A worker sends
a request at most once; of workers that send it at the same time, the first to commit wins.
"""

import asyncio
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

from pydantic import TypeAdapter
from upath import UPath

from pipeline.core.calls import SENT, UNANSWERED, Call, CallKey, call_key
from pipeline.core.errors import StorageError
from pipeline.core.rows import Record
from pipeline.files.storage import (
    commit,
    delete,
    ignore_refusals,
    is_remote,
    list_paths,
    make_folder,
    read,
    with_retries,
    write,
)

Make = Callable[[], Awaitable[Call]]
Slot = AbstractAsyncContextManager[None]
IsReadable = Callable[[Call], bool]
_CALLS_A_FILE = 20  # of a journal, on object stores
_SECONDS_A_FILE = 30.0
# Threads of its own: a call holds its slot until it is written, and must not wait for commits.
_WRITERS = ThreadPoolExecutor(4, "journal")
_KEPT = (None, "truncated")  # problems of replies that are shared; after others each asks again
_MADE_OF_GOOD_REPLIES = ("out_of_range",)  # problems of rows whose calls have none
_OF_SUBJECT = ("question_id", "page_index", "turn", "reference_index")


@dataclass(frozen=True, kw_only=True)
class Replies:
    """The replies of one unit: `calls`, those of this attempt at it (see `Unit.attempt`), committed
    or from its journal; `earlier`, those of the previous attempt; `shared`, those of other
    documents. `keep` is called with each new call, unless it is shared.

    `is_committed`: true if no call of this attempt is to be committed any more.
    """

    calls: Sequence[Call] = ()
    is_committed: bool = False
    attempt: int = 1
    earlier: "EarlierCalls" = field(default_factory=lambda: EarlierCalls())
    shared: "SharedReplies | None" = None
    keep: Callable[[Call], Awaitable[None]] | None = None

    @cached_property
    def _own(self) -> dict[CallKey, Call]:
        return _by_key(self.calls)

    def find(self, keys: Iterable[CallKey], is_readable: IsReadable) -> Call | None:
        """The unit's own call with the first of these keys that has one."""
        found = (self._own.get(key) or self.earlier.good(key, is_readable) for key in keys)
        return next(filter(None, found), None)

    async def ask(self, keys: Sequence[CallKey], make: Make, slot: Slot, is_shared: bool) -> Call:
        """Another document's call to the same request if it `is_shared`, else a new one. `slot` is
        held from the request until the call is kept, so that a crash loses few."""
        if self.shared and is_shared:
            sha = keys[0][0]
            is_again = any(key in self.earlier for key in keys)
            return await self.shared.call(f"{sha}.{self.attempt}" if is_again else sha, make, slot)
        call = await make()
        if self.keep:
            await self.keep(call)
        return call

    @property
    def is_empty(self) -> bool:
        """True if the unit has no calls yet, of this attempt or the previous one."""
        return not self._own and not self.earlier


def _by_key(calls: Iterable[Call]) -> dict[CallKey, Call]:
    return {call_key(call.request_sha, call): call for call in calls}


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


def _are_about_the_same(row: Record, call: Call) -> bool:
    pairs = [(getattr(row, name, None), getattr(call, name)) for name in _OF_SUBJECT]
    return all(own == asked for own, asked in pairs if None not in (own, asked))


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


class Journal:
    """The journal of one unit, while it is executed in this process.

    Leaving the context deletes it, as the unit is committed by then; after an error it stays.
    """

    def __init__(self, warehouse: UPath, step_id: str, unit: str, attempt: int) -> None:
        self._folder = warehouse.joinpath("journal", step_id)
        self._name = f"{unit}.{attempt}"
        self._files: list[UPath] = []  # by their numbers
        self._own: UPath | None = None  # that calls are appended to
        self._pending: list[bytes] = []
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer:
            self._timer.cancel()
        if kind is not None:
            with suppress(StorageError):  # else it would hide why the unit ends
                await self._flush()
        elif self._files:
            async with self._lock:
                await to_thread(self.delete)

    def read(self) -> tuple[Call, ...]:
        """The calls that earlier executions of the unit have written. Lines that are no call, such
        as a torn last one, are left out. It blocks."""
        calls: list[Call | None] = []
        with ignore_refusals(), suppress(FileNotFoundError):
            while True:
                lines = read(self._next()).split(b"\n")
                self._files.append(self._next())
                calls += [call_from_json(line) for line in lines if line]
        return tuple(call for call in calls if call and call.problem not in UNANSWERED)

    async def add(self, call: Call) -> None:
        """Write a finished call, unless it failed in a way that is sent again. Raises StorageError
        where storage refuses it for good."""
        if call.problem in UNANSWERED:
            return
        # A line may follow one that a full disk has torn.
        self._pending.append(b"\n" + call_to_json(call) + b"\n")
        if not is_remote(self._folder) or len(self._pending) >= _CALLS_A_FILE:
            await self._flush()
        elif self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._flush_later())

    def delete(self) -> None:
        """Delete the journal of a unit that is committed. It blocks."""
        self._own = None  # a call of a stage that has raised may still come
        while self._files:
            with ignore_refusals():
                delete(self._files.pop())

    async def _flush_later(self) -> None:
        await asyncio.sleep(_SECONDS_A_FILE)
        with suppress(StorageError):  # the next call's file is refused, too
            await self._flush()

    async def _flush(self) -> None:
        async with self._lock:
            content, self._pending = b"".join(self._pending), []
            if content:
                loop = asyncio.get_running_loop()
                written = loop.run_in_executor(_WRITERS, self._write, content)
                try:
                    await asyncio.shield(written)
                except asyncio.CancelledError:
                    await written  # the replies are paid for
                    raise

    def _write(self, content: bytes) -> None:
        if not is_remote(self._folder):
            with_retries(partial(self._append, content), self._folder)
            return
        is_written = False
        while not is_written:
            is_written = commit(self._next(), content)
            self._files.append(self._next())

    def _append(self, content: bytes) -> None:
        make_folder(self._folder)
        own = self._own  # `delete` may be called meanwhile
        while own is None:
            with suppress(FileExistsError):  # another process's, which has not been read
                self._next().touch(exist_ok=False)
                own = self._own = self._next()
            self._files.append(self._next())
        with own.open("ab") as file:
            file.write(content)

    def _next(self) -> UPath:
        return self._folder / f"{self._name}.{len(self._files)}.jsonl"


class JournalFile(NamedTuple):
    """A file of a journal, and its unit."""

    file: UPath
    step_id: str
    unit: str
    attempt: int


def journal_files(warehouse: UPath) -> Iterator[JournalFile]:
    """The files of all journals. Raises StorageError."""
    folder = warehouse / "journal"
    # Earlier versions had a folder for each unit. What it holds is sent again.
    for file in (*list_paths(folder, "*/*.jsonl"), *list_paths(folder, "*/*/*.jsonl")):
        step_id, name, *_ = file.parts[len(folder.parts) :]
        unit, attempt, *_ = [*name.split("."), ""]
        if attempt.isdecimal():
            yield JournalFile(file, step_id, unit, int(attempt))


def committed_journals(warehouse: UPath, committed: Mapping[str, Mapping[str, int]]) -> list[UPath]:
    """The journal files of committed units, which killed processes and full disks have left behind.
    `committed`: step_id -> unit -> its highest attempt. Raises StorageError."""
    return [
        one.file
        for one in journal_files(warehouse)
        if committed.get(one.step_id, {}).get(one.unit, 0) >= one.attempt
    ]


def call_to_json(call: Call) -> bytes:
    """The call as JSON in one line, without what was sent: whoever replays it has the request."""
    return _json().dump_json(call, exclude=set(SENT))


def call_from_json(content: bytes) -> Call | None:
    """The call; None if the content is no call."""
    try:
        call: Call = _json().validate_json(content)
    except ValueError:
        return None
    return call


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)
