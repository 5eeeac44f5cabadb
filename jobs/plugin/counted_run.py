"""Execute a run that counts its requests, and may kill its process."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from jobs.graph.read_run import read_run
from jobs.run.launch import run
from pipeline.asking.reader import Reader
from pipeline.asking.readers import ReplyFormat, start_reader
from pipeline.core.engine import Engine, EngineSettings, Reply, Request
from pipeline.core.errors import LineWarning
from pipeline.core.prompts import Message
from pipeline.families.family import Family


def counted_run(words: Sequence[str], counts: Path, killed_at: int | None = None) -> None:
    """Execute a run in this process, which is killed by SIGKILL at its request of the number
    `killed_at`. `requests` has how many all runs with this file have sent. Raises as `run` does."""
    resolved = read_run(words)

    async def start(settings: EngineSettings, family: Family, reply_format: ReplyFormat) -> Reader:
        reader = await start_reader(settings, family, reply_format)
        return replace(
            reader, keeps_journal=True, engine=_Counted(reader.engine, counts, killed_at)
        )

    with patch("jobs.run.execute.start_reader", start), redirect_stderr(StringIO()):
        run(resolved, lambda line: None)


@dataclass
class _Counted:
    """An engine that adds a byte to the file `counts` before each request; see `counted_run`."""

    engine: Engine
    counts: Path
    killed_at: int | None

    def __post_init__(self) -> None:
        self.name, self.context_tokens = self.engine.name, self.engine.context_tokens

    async def generate(self, request: Request) -> Reply:
        with self.counts.open("ab") as file:
            file.write(b".")
        if requests(self.counts) == self.killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return await self.engine.generate(request)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return await self.engine.count_tokens(messages)


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
