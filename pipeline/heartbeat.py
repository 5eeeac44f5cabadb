"""A worker's sign of life: what it has in hand, for `status`, and that it gets on. Advisory."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from pipeline.place import AnyPath, place
from pipeline.store.shards import write_json
from pipeline.usage import UsageCounters

SECONDS_BETWEEN_BEATS = 10.0


class Heartbeat:
    """Rewrites <folder>/<host>-<pid>.json every few seconds, from the first `start` on.

    `launch` is the command it works for, `tally` what it has done; `is_starting`: its engine is not
    up yet.
    """

    def __init__(self, folder: AnyPath, launch: str, tally: UsageCounters) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._launch = launch
        self._tally = tally
        self._file = place(folder) / f"{self.name}.json"
        self._since: dict[str, float] = {}
        self._is_starting = False
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Within it, the worker's engine starts."""
        self._is_starting = True
        self._go_on()
        try:
            yield
        finally:
            self._is_starting = False
            self._write()

    @contextmanager
    def on(self, document_id: str) -> Iterator[None]:
        """Within it, the worker has the document in hand."""
        self._since[document_id] = time.monotonic()
        self._go_on()
        try:
            yield
        finally:
            self._since.pop(document_id, None)  # another chunk of its questions may have done so

    def _go_on(self) -> None:
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
            **asdict(self._tally),
            "documents": documents,
        }
        write_json(self._file, content)
