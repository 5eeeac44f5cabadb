"""A worker's heartbeat file: documents in flight and usage counters, for `status`. Advisory."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from pipeline.place import AnyPath, advisory, place
from pipeline.store.shards import process_name, write_json
from pipeline.usage import UsageCounters

SECONDS_BETWEEN_BEATS = 10.0


class Heartbeat:
    """Rewrites <folder>/<host>-<pid>.json every 10 seconds from the worker's first activity.

    `launch`: the id of the command that the worker belongs to; `usage`: the worker's counters.
    """

    def __init__(self, folder: AnyPath, launch: str, usage: UsageCounters) -> None:
        self.name = process_name()
        self._launch = launch
        self._usage = usage
        self._file = place(folder) / f"{self.name}.json"
        self._since: dict[str, float] = {}
        self._is_starting = False
        self.waiting_for: Callable[[], str] = str  # the server that requests wait for, or ""
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Report the engine as starting inside the context."""
        self._is_starting = True
        self._keep_beating()
        try:
            yield
        finally:
            self._is_starting = False
            self._write()

    @contextmanager
    def document(self, document_id: str) -> Iterator[None]:
        """Report the document as in flight inside the context."""
        self._since[document_id] = time.monotonic()
        self._keep_beating()
        try:
            yield
        finally:
            self._since.pop(document_id, None)  # another chunk of it may have ended

    def _keep_beating(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._write()
            await asyncio.sleep(SECONDS_BETWEEN_BEATS)

    def _write(self) -> None:
        now = time.monotonic()
        documents = {name: round(now - start, 1) for name, start in self._since.items()}
        content = {
            "worker": self.name,
            "launch": self._launch,
            "is_starting": self._is_starting,
            "waiting_for": self.waiting_for(),
            **asdict(self._usage),
            "documents": documents,
        }
        with advisory():
            write_json(self._file, content)
