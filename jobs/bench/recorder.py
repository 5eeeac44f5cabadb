"""An engine that keeps what it was asked and when, one file a process. It changes no reply."""

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.ask import Ask, Reader
from pipeline.engine import Engine, Reply, Request
from pipeline.prompts import Message


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that went to an engine. Times are the machine's clock, in seconds."""

    request_sha: str  # as in the calls table
    request: Request
    reply: Reply
    begun: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one worker's engine was asked, in the order of admission, and when it was ready."""

    ready: float
    sent: tuple[Sent, ...]


class _Recorder:
    """`engine`, watched. The file holds when it was ready, then a pickled Sent a request."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.name = reader.engine.name
        self.context_tokens = reader.engine.context_tokens
        self._engine: Engine = reader.engine
        self._ask = Ask(reader, "bench", "", ())
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.pickle").open("wb")
        self._keep(time.time())

    async def generate(self, request: Request) -> Reply:
        begun = time.time()
        reply = await self._engine.generate(request)
        # The same name as in the calls table, by which a request finds its document.
        self._keep(Sent(self._ask.sha_of(request), request, reply, begun))
        return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return await self._engine.count_tokens(messages)

    def _keep(self, what: float | Sent) -> None:
        pickle.dump(what, self._file)
        self._file.flush()


def recording(reader: Reader, folder: Path) -> Reader:
    """The reader with its engine watched from now on, when it is ready."""
    return replace(reader, engine=_Recorder(reader, folder))


def recorded(folder: Path) -> list[Recorded]:
    """What the workers' engines kept in `folder`."""
    found = []
    for file in sorted(folder.glob("*.pickle")):
        ready, *sent = _read(file)
        assert isinstance(ready, float)
        in_order = sorted((s for s in sent if isinstance(s, Sent)), key=lambda s: s.begun)
        found.append(Recorded(ready, tuple(in_order)))
    return found


def _read(file: Path) -> Iterator[float | Sent]:
    with file.open("rb") as open_file:
        while open_file.peek(1):
            yield pickle.load(open_file)
