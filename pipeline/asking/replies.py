"""The replies that a unit has already, and those that it keeps.

A reply is looked for in the unit's committed calls, in its journal, among the good calls of the
previous attempt at it, and, if documents may send the same request, in the shared replies. Only
then is an engine asked.

The journal has the finished calls of an open unit, written as they arrive, and replayed after a
crash: <warehouse>/journal/<step_id>/<unit>.<attempt>.<number>.jsonl, a Call as JSON per line. Only
the process that made a file writes it. The numbers have no gap, so a single look shows that a unit
has no journal. Locally each call is appended at once and not synced: after a power cut some calls
are sent again. On object stores a file holds 20 calls, or those of 30 seconds, and is one PUT. A
call that cannot be written for good ends the run, so that no others are paid for in vain.

Documents that send the same request share its reply, as one chat session is in many histories.
<warehouse>/shared/<step_id>/<request_sha>.json holds the call of the first document. A worker sends
a request at most once; if several workers send it at the same time, the first to commit wins.
"""

import asyncio
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

from pydantic import TypeAdapter
from upath import UPath

from pipeline.core.calls import OF_SUBJECT, SENT, UNANSWERED, Call, CallKey, Subject, call_key
from pipeline.core.engine import Request
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
)

_CALLS_A_FILE = 20  # of a journal, on object stores
_SECONDS_A_FILE = 30.0
# Threads of its own: a call holds its slot until it is written, and must not wait for commits.
_WRITERS = ThreadPoolExecutor(4, "journal")
_SHARED = (None, "truncated")  # problems of shared replies; after others each document asks again


class Wanted(NamedTuple):
    """A reply that is needed."""

    requests: Mapping[str, Request]  # by hash: of this attempt at the unit, then of earlier ones
    subject: Subject
    document_id: str
    is_shared: bool  # other documents may send the same request
    is_readable: Callable[[str], bool]  # whether a reply that was not cut can be read

    @property
    def keys(self) -> list[CallKey]:
        return [call_key(request_sha, self.subject) for request_sha in self.requests]

    def copy(self, call: Call) -> Call:
        """The call with this subject; `is_shared` if it was sent for another subject."""
        copy = replace(call, **asdict(self.subject), document_id=self.document_id)
        key = call_key(call.request_sha, call)
        is_copy = call.document_id != self.document_id or call_key(call.request_sha, copy) != key
        return replace(copy, is_shared=is_copy)


@dataclass(frozen=True, kw_only=True)
class Replies:
    """The replies that one unit has already."""

    calls: Sequence[Call] = ()  # of this attempt (see `Unit.attempt`), committed or in its journal
    is_committed: bool = False  # no more calls of this attempt will be committed
    attempt: int = 1
    earlier: Sequence[Call] = ()  # of the previous attempt
    problems: Sequence[Record] = ()  # its rows that have a problem
    shared: "SharedReplies | None" = None  # of other documents
    journal: "Journal | None" = None

    async def find(self, wanted: Wanted) -> Call | None:
        """The unit's call of this attempt, or a good one of the previous attempt, or else a shared
        one of another document; None if the engine must be asked."""
        for key in wanted.keys:
            if call := self._calls_by_key.get(key):
                return call
            call = self._earlier_by_key.get(key)
            if call and self._is_good(call, wanted):
                return call
        if self.shared is None or not wanted.is_shared:
            return None
        call = await self.shared.find(self._shared_name(wanted))
        return wanted.copy(call) if call else None

    async def keep(self, call: Call, wanted: Wanted) -> Call:
        """Keep a new call; returns it, or another worker's, if that was committed first."""
        if self.shared and wanted.is_shared:
            return wanted.copy(await self.shared.keep(self._shared_name(wanted), call))
        if self.journal:
            await self.journal.add(call)
        return call

    def locked(self, wanted: Wanted) -> AbstractAsyncContextManager[object]:
        """Lock a shared reply, so that one document of this process at a time looks for it."""
        if self.shared and wanted.is_shared:
            return self.shared.locks.setdefault(self._shared_name(wanted), asyncio.Lock())
        return nullcontext()

    @cached_property
    def _calls_by_key(self) -> dict[CallKey, Call]:
        return {call_key(call.request_sha, call): call for call in self.calls}

    @cached_property
    def _earlier_by_key(self) -> dict[CallKey, Call]:
        return {call_key(call.request_sha, call): call for call in self.earlier}

    def _is_good(self, call: Call, wanted: Wanted) -> bool:
        """True if a retry of the unit may replay this call of the previous attempt. False if it got
        no reply, or may have caused the problem of a row about the same subject."""
        if call.problem in UNANSWERED:
            return False
        subject = {name: getattr(call, name) for name in OF_SUBJECT}
        problems = {
            row.problem for row in self.problems
            if all(getattr(row, name, None) in (None, value) or value is None
                   for name, value in subject.items())
        }  # fmt: skip
        if "out_of_range" in problems:  # made from a reply without a problem
            return False
        return not problems or (call.problem is None and wanted.is_readable(call.reply))

    def _shared_name(self, wanted: Wanted) -> str:
        """The request's hash; with the attempt's number if the previous attempt sent it too."""
        request_sha = next(iter(wanted.requests))
        is_again = any(key in self._earlier_by_key for key in wanted.keys)
        return f"{request_sha}.{self.attempt}" if is_again else request_sha


class SharedReplies:
    """The shared replies of one step, each named by the hash of its request. New calls are kept in
    memory if the warehouse `is_only_read`."""

    def __init__(self, folder: UPath, is_only_read: bool = False) -> None:
        self._folder = folder
        self._in_memory: dict[str, Call] = {}
        self._is_only_read = is_only_read
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, name: str) -> Call | None:
        return self._in_memory.get(name) or await to_thread(self._load, name)

    async def keep(self, name: str, call: Call) -> Call:
        """Commit a new call; returns it, or the call of another worker that committed first."""
        if self._is_only_read:
            self._in_memory[name] = call
        elif call.problem in _SHARED:
            file, content = self._folder / f"{name}.json", call_to_json(call)
            if not await to_thread(commit, file, content):
                return await to_thread(self._load, name) or call
        return call

    def _load(self, name: str) -> Call | None:
        with suppress(FileNotFoundError):
            return call_from_json(read(self._folder / f"{name}.json"))
        return None


class Journal:
    """The journal of one unit, while it is executed in this process. Leaving the context deletes
    it, as the unit is committed by then; it stays if an exception is raised."""

    def __init__(self, warehouse: UPath, step_id: str, unit: str, attempt: int) -> None:
        self._folder = warehouse.joinpath("journal", step_id)
        self._name = f"{unit}.{attempt}"
        self._files: list[UPath] = []  # in the order of their numbers
        self._appended: UPath | None = None  # the file that calls are appended to
        self._pending: list[bytes] = []
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._timer:
            self._timer.cancel()
        if error:
            with suppress(StorageError):  # or it would hide why the unit ends
                await self._flush()
        elif self._files:
            async with self._lock:
                await to_thread(self.delete)

    def read(self) -> tuple[Call, ...]:
        """The calls that earlier executions of the unit have written. A line that is no call, such
        as a torn last one, is left out. It blocks."""
        calls: list[Call | None] = []
        with ignore_refusals(), suppress(FileNotFoundError):
            while True:
                lines = read(self._next()).split(b"\n")
                self._files.append(self._next())
                calls += [call_from_json(line) for line in lines if line]
        return tuple(call for call in calls if call)

    async def add(self, call: Call) -> None:
        """Write a finished call, unless it has no reply: then it is sent again. Raises StorageError
        if storage refuses it for good."""
        if call.problem in UNANSWERED:
            return
        # The leading line break ends a line that a full disk has torn.
        self._pending.append(b"\n" + call_to_json(call) + b"\n")
        if not is_remote(self._folder) or len(self._pending) >= _CALLS_A_FILE:
            await self._flush()
        elif self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._flush_later())

    def delete(self) -> None:
        """Delete the journal of a committed unit. It blocks."""
        self._appended = None  # a stage that has raised may still add a call
        while self._files:
            with ignore_refusals():
                delete(self._files.pop())

    async def _flush_later(self) -> None:
        await asyncio.sleep(_SECONDS_A_FILE)
        with suppress(StorageError):  # then the next call is refused, too, and raises
            await self._flush()

    async def _flush(self) -> None:
        async with self._lock:
            content, self._pending = b"".join(self._pending), []
            if content:
                loop = asyncio.get_running_loop()
                writing = loop.run_in_executor(_WRITERS, self._write, content)
                try:
                    await asyncio.shield(writing)
                except asyncio.CancelledError:
                    await writing  # a reply that is paid for is never lost
                    raise

    def _write(self, content: bytes) -> None:
        if not is_remote(self._folder):
            with_retries(partial(self._append, content), self._folder)
            return
        while not commit(self._next(), content):  # another process's file, which has not been read
            self._files.append(self._next())
        self._files.append(self._next())

    def _append(self, content: bytes) -> None:
        make_folder(self._folder)
        file = self._appended  # `delete` may be called meanwhile
        while file is None:
            with suppress(FileExistsError):  # another process's file, which has not been read
                self._next().touch(exist_ok=False)
                file = self._appended = self._next()
            self._files.append(self._next())
        with file.open("ab") as appended:
            appended.write(content)

    def _next(self) -> UPath:
        return self._folder / f"{self._name}.{len(self._files)}.jsonl"


def journal_files(warehouse: UPath) -> Iterator[tuple[UPath, str, str]]:
    """Every file of every journal, with its step_id and unit. Raises StorageError."""
    for file in list_paths(warehouse / "journal", "*/*.jsonl"):
        yield file, file.parent.name, file.name.partition(".")[0]


@cache
def _json() -> TypeAdapter[Any]:
    return TypeAdapter(Call)


def call_to_json(call: Call) -> bytes:
    """The call as JSON in one line, without its request, which is rendered again for a replay."""
    return _json().dump_json(call, exclude=set(SENT))


def call_from_json(content: bytes) -> Call | None:
    with suppress(ValueError):
        call: Call = _json().validate_json(content)
        return call
    return None
