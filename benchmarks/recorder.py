"""Record every request of a worker's engine with its reply, and the worker's CPU seconds.

One pickle file per process, appended to at every event. Requests and replies pass unchanged.
"""

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.asking.ask import Reader, start_reader
from pipeline.core.engine import Engine, EngineSettings, Reply, Request
from pipeline.core.prompts import Message
from pipeline.families.family import Family
from pipeline.work.units import Unit
from pipeline.worker.crashes import Placement
from pipeline.worker.progress import Summary
from pipeline.worker.worker import MakeWorker, Worker


@dataclass(frozen=True, slots=True)
class Sent:
    request_sha: str  # as in the calls table
    request: Request
    reply: Reply
    begun: float  # time.time()
    recorder_cpu: float = 0.0  # CPU seconds of recording this engine's earlier requests


@dataclass(frozen=True, slots=True)
class Moment:
    """time.time(), and the CPU seconds of this process so far, without its child processes."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> "Moment":
        return cls(time.time(), time.process_time())


@dataclass(frozen=True, slots=True)
class Recorded:
    """The requests of one worker's engine in the order they were sent; the moments when the
    engine was ready and when the worker's last document was finished."""

    ready: Moment
    sent: tuple[Sent, ...]
    ended: Moment

    @property
    def recorder_cpu(self) -> float:
        """CPU seconds for recording the requests, except the last one."""
        return max((one.recorder_cpu for one in self.sent), default=0.0)


class RecordedWorker:
    def __init__(self, worker: Worker, folder: Path) -> None:
        self._worker, self._folder = worker, folder

    async def work(self, document_id: str, units: Sequence[Unit], num_words: int) -> Summary:
        summary = await self._worker.work(document_id, units, num_words)
        _keep(self._folder, Moment.now())
        return summary

    async def close(self) -> None:
        await self._worker.close()


class _RecordedEngine:
    def __init__(self, reader: Reader, folder: Path) -> None:
        self.name = reader.engine.name
        self.context_tokens = reader.engine.context_tokens
        self._engine: Engine = reader.engine
        self._reader = reader
        self._folder = folder
        self._cpu = 0.0

    async def generate(self, request: Request) -> Reply:
        begun = time.time()
        reply = await self._engine.generate(request)
        before = time.thread_time()
        # The calls table has the same sha, which joins a request to its document.
        sha = self._reader.sha_of(request)
        _keep(self._folder, Sent(sha, request, reply, begun, self._cpu))
        self._cpu += time.thread_time() - before
        return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return await self._engine.count_tokens(messages)


def recorded_worker(folder: Path, make: MakeWorker, placement: Placement) -> Any:
    return RecordedWorker(make(placement), folder)


async def start_recorded(
    folder: Path, engine: EngineSettings, family: Family, is_constrained: bool
) -> Reader:
    """The reader that a run would start, its engine recorded in `folder`."""
    return record_engine(await start_reader(engine, family, is_constrained), folder)


def record_engine(reader: Reader, folder: Path) -> Reader:
    """`reader` with its engine recorded from now on; the engine must be ready."""
    recorder = _RecordedEngine(reader, folder)
    _keep(folder, Moment.now())
    return replace(reader, engine=recorder)


def _keep(folder: Path, what: Sent | Moment) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{os.getpid()}.pickle").open("ab") as file:
        pickle.dump(what, file)


def read_records(folder: Path) -> list[Recorded]:
    """The records in `folder`, one per worker process."""
    found = []
    for file in sorted(folder.glob("*.pickle")):
        kept = list(_read(file))
        moments = [one for one in kept if isinstance(one, Moment)]
        sent = sorted((s for s in kept if isinstance(s, Sent)), key=lambda s: s.begun)
        found.append(Recorded(moments[0], tuple(sent), moments[-1]))
    return found


def _read(file: Path) -> Iterator[Any]:
    with file.open("rb") as open_file:
        while open_file.peek(1):
            yield pickle.load(open_file)
