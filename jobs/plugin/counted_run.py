"""Execute a run that counts its requests, and may kill its process."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.graph.read_run import read_run
from jobs.run.launch import run
from pipeline.asking.kept_engines import KeptEngines
from pipeline.asking.reader import Reader
from pipeline.asking.readers import ReplyFormat
from pipeline.core.engine import EngineSettings, Request
from pipeline.core.errors import LineWarning
from pipeline.families.family import Family
from pipeline.worker.inline import InlineHost


def counted_run(words: Sequence[str], counts: Path, killed_at: int | None = None) -> None:
    """Execute a run in this process, which is killed by SIGKILL at its request of the number
    `killed_at`. `requests` has how many all runs with this file have sent. Raises as `run` does."""
    resolved = read_run(words)
    with InlineHost(_CountedEngines(counts, killed_at)) as host:
        run(resolved, lambda line: None, host=host, listener=_Silent())


def killed_run(words: Sequence[str], counts: Path, killed_at: int) -> None:
    """As `counted_run`, in a process of its own, which repeats no warning."""
    spawned = multiprocessing.get_context("spawn")
    process = spawned.Process(target=_without_warnings, args=(words, counts, killed_at))
    process.start()
    process.join()


def _without_warnings(words: Sequence[str], counts: Path, killed_at: int) -> None:
    warnings.simplefilter("ignore", LineWarning)
    counted_run(words, counts, killed_at)


def requests(counts: Path) -> int:
    """The number of requests that were sent."""
    return counts.stat().st_size if counts.exists() else 0


class _CountedEngines(KeptEngines):
    """Adds a byte to the file `counts` before each request; see `counted_run`. All engines keep
    replies in journals, as those do whose replies cost something."""

    def __init__(self, counts: Path, killed_at: int | None) -> None:
        super().__init__()
        self._counts, self._killed_at = counts, killed_at

    async def start_reader(
        self, settings: EngineSettings, family: Family, reply_format: ReplyFormat
    ) -> Reader:
        reader = await super().start_reader(settings, family, reply_format)
        return replace(reader, keeps_journal=True)

    def told(self, request: Request) -> Request:
        with self._counts.open("ab") as file:
            file.write(b".")
        if requests(self._counts) == self._killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().told(request)


class _Silent:
    """Shows no progress."""

    def loaded(self, num_documents: int) -> None:
        return

    def at_work(self, state: Mapping[str, Any]) -> None:
        return

    def found(self, line: str) -> None:
        return
