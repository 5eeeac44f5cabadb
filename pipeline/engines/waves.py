"""Waves of requests to a server that answers in batches: collected, sent, followed to their end,
and taken up again by the next process of the run."""

import asyncio
import time
from asyncio import to_thread
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from upath import UPath

from pipeline.core.engine import Reply
from pipeline.core.errors import OutageError
from pipeline.core.settings import sha, sha_of_json
from pipeline.engines.batch_client import ENDED, URL, Batch, BatchClient, UnlistedError
from pipeline.engines.outage import FailedError
from pipeline.files.place import delete, list_paths, read_object, write_json

T = TypeVar("T")
Send = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
_REFUSED = ("failed", "cancelled")  # statuses after which nothing is sent again by itself


@dataclass(frozen=True)
class Limits:
    """When a wave is sent: once nothing has come for `seconds`, or it has so many requests or
    bytes; and the seconds between two looks at its batch."""

    seconds: float
    look_seconds: float
    requests: int
    num_bytes: int


@dataclass(eq=False)
class Line:
    """A request of a wave. `outcome` is set when the batch has ended, or to the error of the whole
    wave."""

    body_sha: str
    body: str
    outcome: "asyncio.Future[Reply | BaseException]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


@dataclass(eq=False)
class Wave:
    """The lines of one file. `note`: the file of the run's folder that names them; `following`
    waits for their outcomes."""

    lines: list[Line] = field(default_factory=list)
    num_bytes: int = 0
    note: UPath | None = None
    batch: Batch | None = None
    since: float = field(default_factory=time.monotonic)
    following: "asyncio.Task[None] | None" = None

    def named_lines(self) -> dict[str, Line]:
        """The lines by their `custom_id`."""
        return {f"{line.body_sha}.{number}": line for number, line in enumerate(self.lines)}

    def content(self) -> bytes:
        """The file that is uploaded."""
        call = f'"method":"POST","url":"{URL}"'
        named = self.named_lines().items()
        return "".join(
            f'{{"custom_id":"{name}",{call},"body":{line.body}}}\n' for name, line in named
        ).encode()


class Waves:
    """`send` sends a request once the server is up, as `Outage.send_when_up` does.

    A wave that is sent is noted in the run's folder before its batch exists: the next process of
    the run waits for that batch, where it needs one of the same requests, and pays none twice.
    """

    def __init__(self, client: BatchClient, send: Send, limits: Limits) -> None:
        self._client, self._send, self._limits = client, send, limits
        self._open = Wave()
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: set[Wave] = set()
        self._folder: UPath | None = None
        self._left: dict[str, deque[tuple[Wave, Line]]] = defaultdict(deque)  # by body_sha

    async def reply(self, body: str) -> Reply:
        """The reply to a request, given by its JSON. Raises FailedError where its batch has none,
        OutageError where the server refuses the whole batch, and the errors of storage."""
        body_sha = sha_of_json(body, 32)
        while left := self._left.get(body_sha):
            wave, line = left.popleft()
            if wave.following is None:
                self._start(wave, self._take_up(wave))
            found = await line.outcome
            if not isinstance(found, FailedError):
                return _reply_or_raise(found)
        line = Line(body_sha, body)
        self._collect(line)
        return _reply_or_raise(await line.outcome)

    async def resume(self, folder: UPath) -> None:
        """Note waves in `folder` from now on; those that are noted there may be asked for again."""
        self._folder = folder
        for note in await to_thread(list_paths, folder, "*.json"):
            noted = await to_thread(read_object, note)
            wave = Wave([Line(body_sha, "") for body_sha in noted.get("lines", ())], note=note)
            for line in wave.lines:
                self._left[line.body_sha].append((wave, line))

    def waiting_for(self) -> str:
        """The batches that are waited for, and how far they are; "" without any."""
        waves = self._under_way
        if not waves:
            return ""
        done = sum(wave.batch.num_done for wave in waves if wave.batch)
        num = sum(len(wave.lines) for wave in waves)
        names = sorted(wave.batch.batch_id for wave in waves if wave.batch)
        which = names[0] if len(names) == len(waves) == 1 else f"{len(waves)} batches"
        seconds = time.monotonic() - min(wave.since for wave in waves)
        return f"{which} ({done} of {num} requests) since {seconds:.0f} s"

    async def close(self) -> None:
        """Follow no wave any more; the server goes on with those that it has."""
        if self._timer:
            self._timer.cancel()
        tasks = [wave.following for wave in self._under_way if wave.following]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _collect(self, line: Line) -> None:
        """Put a line into the open wave, and send that when it is full or nothing else comes."""
        size = len(line.body.encode())
        if self._open.lines and self._open.num_bytes + size > self._limits.num_bytes:
            self._send_open()
        self._open.lines.append(line)
        self._open.num_bytes += size
        if self._timer:
            self._timer.cancel()
        if len(self._open.lines) >= self._limits.requests:
            self._send_open()
        else:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limits.seconds, self._send_open)

    def _send_open(self) -> None:
        wave, self._open = self._open, Wave()
        wave.lines = [line for line in wave.lines if not line.outcome.cancelled()]
        if wave.lines:
            self._start(wave, self._submit(wave))

    def _start(self, wave: Wave, doing: Coroutine[Any, Any, None]) -> None:
        wave.since = time.monotonic()
        wave.following = asyncio.create_task(doing)
        wave.following.add_done_callback(partial(self._ended, wave))
        self._under_way.add(wave)

    def _ended(self, wave: Wave, task: "asyncio.Task[None]") -> None:
        """Give every line that is still open the error by which the wave ended, whatever it is:
        else its request would wait for ever."""
        self._under_way.discard(wave)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        status = wave.batch.status if wave.batch else "unknown"
        unanswered = FailedError(f"the batch ended without this reply ({status})", "either")
        _give(wave.lines, error or unanswered)

    async def _submit(self, wave: Wave) -> None:
        """Send a wave, and give its lines their outcomes. Raises OutageError if the server refuses
        it, somebody has cancelled it there, or it may have been sent before."""
        content = await to_thread(wave.content)
        try:
            file_id = await self._send(partial(self._client.upload, content))
            await self._note(wave, file_id)
            batch = await self._send(partial(self._client.create, file_id))
            wave.batch = batch
            await self._note(wave, file_id)
            batch = await self._follow(wave, batch)
        except UnlistedError:
            raise self._undecided(wave, file_id) from None
        except FailedError as error:
            raise self._refusal(str(error)) from None
        if batch.status in _REFUSED:
            raise self._refusal(f"{batch.batch_id} {batch.status} {batch.why}".strip())

    async def _take_up(self, wave: Wave) -> None:
        """Give the lines of an earlier process's wave their outcomes; a wave that the server does
        not know any more is forgotten. Raises OutageError if the server cannot say."""
        assert wave.note is not None
        noted = await to_thread(read_object, wave.note)
        known, file_id = noted.get("batch"), str(noted.get("file"))
        look, find = self._client.look, self._client.find
        try:
            found = await self._send(partial(look, known) if known else partial(find, file_id))
            if found:
                await self._follow(wave, found)
                return
        except UnlistedError:
            raise self._undecided(wave, file_id) from None
        except FailedError as error:
            if error.blame != "request" or error.problem == "timeout":
                raise self._refusal(str(error)) from None
        await to_thread(delete, wave.note)

    async def _follow(self, wave: Wave, batch: Batch) -> Batch:
        """Wait for the batch's end, give the lines that it answers their outcomes, return it."""
        wave.batch = batch
        while batch.status not in ENDED:
            await asyncio.sleep(self._limits.look_seconds)
            batch = wave.batch = await self._send(partial(self._client.look, batch.batch_id))
        answers = await self._send(partial(self._client.answers, batch))
        for name, line in wave.named_lines().items():
            if name in answers:
                _give([line], answers[name])
        return batch

    def _refusal(self, words: str) -> OutageError:
        named = "" if words.startswith(self._client.address) else f"{self._client.address}: "
        return OutageError(
            f"{named}the server refuses a batch ({words}); run the same command to resume once "
            "that is fixed"
        )

    def _undecided(self, wave: Wave, file_id: str) -> OutageError:
        """Nobody but the user can find out whether the wave would be paid twice."""
        return OutageError(
            f"{self._client.address}: a batch of the file {file_id} may have been created already, "
            "and the server lists no batches; if you find it there, "
            f'write its id as "batch" into {wave.note} and remove "sha256" there, else delete '
            "that file; then run the same command"
        )

    async def _note(self, wave: Wave, file_id: str) -> None:
        """Note the wave in the run's folder, with its batch once there is one."""
        if self._folder is None:
            return
        wave.note = self._folder / f"{sha(file_id, 16)}.json"
        batch = wave.batch.batch_id if wave.batch else None
        lines = [line.body_sha for line in wave.lines]
        noted = {"file": file_id, "batch": batch, "lines": lines}
        await to_thread(write_json, wave.note, noted)


def _give(lines: Sequence[Line], outcome: Reply | BaseException) -> None:
    """Set the outcome of lines that have none yet."""
    for line in lines:
        if not line.outcome.done():
            line.outcome.set_result(outcome)


def _reply_or_raise(outcome: Reply | BaseException) -> Reply:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
