"""A worker's sign of life: which documents it has in hand, for `status`. Advisory only."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.store.shards import write_json

SECONDS_BETWEEN_BEATS = 10.0


class Heartbeat:
    """Rewrites <folder>/<host>-<pid>.json every few seconds while documents are in hand."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self._file = folder / f"{self.name}.json"
        self._since: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def on(self, document_id: str) -> Iterator[None]:
        """Within it, the worker has the document in hand."""
        self._since[document_id] = time.monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            del self._since[document_id]

    async def _beat(self) -> None:
        while True:
            now = time.monotonic()
            documents = {name: round(now - start, 1) for name, start in self._since.items()}
            write_json(self._file, {"worker": self.name, "documents": documents})
            await asyncio.sleep(SECONDS_BETWEEN_BEATS)
