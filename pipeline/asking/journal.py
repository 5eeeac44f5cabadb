"""The journal of an open unit: its finished calls, written as they arrive, and replayed after a
crash of the process.

<warehouse>/journal/<step_id>/<unit>.<attempt>/<process>-<hex>.<part>.jsonl: a Call as JSON per
line. Locally each call is appended at once: the kernel keeps what a killed process has written (it
is not synced: after a power cut some calls are sent again). On object stores a part holds 20 calls,
or those of 30 seconds, and is one PUT. A call that cannot be written for good ends the run, so that
no others are paid for in vain; one that cannot be read is sent again.
"""

import asyncio
import uuid
from asyncio import to_thread
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from upath import UPath

from pipeline.asking.call_json import call_from_json, call_to_json
from pipeline.core.calls import UNANSWERED, Call
from pipeline.core.errors import StorageError
from pipeline.files.place import (
    delete_folder,
    is_remote,
    list_paths,
    prepare_folder,
    read,
    write,
)
from pipeline.files.processes import process_name
from pipeline.files.storage_retries import ignore_refusals, with_retries

_CALLS_A_PART = 20
_SECONDS_A_PART = 30.0
# Threads of its own: a call holds its slot until it is written, and must not wait for commits.
_WRITERS = ThreadPoolExecutor(4, "journal")


class Journal:
    """The journal of one unit, while it is executed in this process.

    Leaving the context deletes it, as the unit is committed by then; after an error it stays.
    """

    def __init__(self, warehouse: UPath, step_id: str, unit: str, attempt: int) -> None:
        self._folder = warehouse.joinpath("journal", step_id, f"{unit}.{attempt}")
        # No two processes ever write to the same file, not even those of equal name on two hosts.
        self._name = f"{process_name()}-{uuid.uuid4().hex[:8]}"
        self._is_used = False
        self._num_parts = 0
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
        elif self._is_used:
            async with self._lock:
                await to_thread(_delete, self._folder)

    async def read(self) -> tuple[Call, ...]:
        """The calls that earlier executions of the unit have written. Lines that are no call, such
        as a torn last one, are left out."""
        files, calls = await to_thread(_read, self._folder)
        self._is_used = self._is_used or bool(files)
        return calls

    async def add(self, call: Call) -> None:
        """Write a finished call, unless it failed in a way that is sent again. Raises StorageError
        where storage refuses it for good."""
        if call.problem in UNANSWERED:
            return
        # A line may follow one that a full disk has torn.
        self._pending.append(b"\n" + call_to_json(call) + b"\n")
        self._is_used = True
        if not is_remote(self._folder) or len(self._pending) >= _CALLS_A_PART:
            await self._flush()
        elif self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._flush_later())

    async def _flush_later(self) -> None:
        await asyncio.sleep(_SECONDS_A_PART)
        with suppress(StorageError):  # the next call's part is refused, too
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
        if is_remote(self._folder):
            write(self._folder / f"{self._name}.{self._num_parts}.jsonl", content)
            self._num_parts += 1
        else:
            with_retries(partial(self._append, content), self._folder)

    def _append(self, content: bytes) -> None:
        prepare_folder(self._folder)
        with (self._folder / f"{self._name}.0.jsonl").open("ab") as file:
            file.write(content)


def committed_journals(warehouse: UPath, committed: Mapping[str, Mapping[str, int]]) -> list[UPath]:
    """The journal files of committed units, which killed processes and full disks have left behind.
    `committed`: step_id -> unit -> its highest attempt. Raises StorageError."""
    files = list_paths(warehouse / "journal", "*/*/*.jsonl")
    return [file for file in files if _is_over(file.parent, committed)]


def _is_over(folder: UPath, committed: Mapping[str, Mapping[str, int]]) -> bool:
    unit, _, attempt = folder.name.partition(".")
    done = committed.get(folder.parent.name, {}).get(unit, 0)
    return attempt.isdecimal() and done >= int(attempt)


def _read(folder: UPath) -> tuple[list[UPath], tuple[Call, ...]]:
    with ignore_refusals():
        files = sorted(list_paths(folder, "*.jsonl"))
        lines = [line for file in files for line in read(file).split(b"\n") if line]
        found = [call for call in map(call_from_json, lines) if call is not None]
        return files, tuple(call for call in found if call.problem not in UNANSWERED)
    return [], ()


def _delete(folder: UPath) -> None:
    with ignore_refusals():
        delete_folder(folder)
