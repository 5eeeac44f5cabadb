"""The journal of an open unit: its finished calls, written as they arrive, and replayed after a
crash of the process.

<warehouse>/journal/<step_id>/<unit>.<attempt>.<number>.jsonl: a Call as JSON per line. A file is
only ever written by the process that made it, and the numbers leave no gap: most units have none,
which a single look shows. Locally each call is appended at once: the kernel keeps what a killed
process has written (it is not synced: after a power cut some calls are sent again). On object
stores a file holds 20 calls, or those of 30 seconds, and is one PUT. A call that cannot be written
for good ends the run, so that no others are paid for in vain; one that cannot be read is sent
again.
"""

import asyncio
from asyncio import to_thread
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from upath import UPath

from pipeline.asking.call_json import call_from_json, call_to_json
from pipeline.core.calls import UNANSWERED, Call
from pipeline.core.errors import StorageError
from pipeline.files.place import commit, delete, is_remote, list_paths, prepare_folder, read
from pipeline.files.storage_retries import ignore_refusals, with_retries

_CALLS_A_FILE = 20  # on object stores
_SECONDS_A_FILE = 30.0
# Threads of its own: a call holds its slot until it is written, and must not wait for commits.
_WRITERS = ThreadPoolExecutor(4, "journal")


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
        elif self._files:  # written since `delete`
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
        prepare_folder(self._folder)
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
