"""Distinguish a server's outage from a request that fails by itself, and wait for the server.

After every failure the server is probed by a request that it has answered before.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal, TypeVar

from pipeline.core.errors import OutageError, Problem
from pipeline.core.redaction import redacted

T = TypeVar("T")
Blame = Literal["server", "either", "request"]
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds; waits double from one to the other
_REFUSALS = 4  # per retry, of a request to which a server says that it is busy, while it is not
_MOST_ASKED_FOR = 60.0  # seconds of waiting that a server may ask for (Retry-After)


class FailedError(Exception):
    """A request without a reply. `blame`: the possible cause. `after`: the seconds that the server
    asks to wait. `problem`: of the row, where the request is at fault; None: engine_failed."""

    def __init__(
        self,
        why: str,
        blame: Blame,
        problem: Problem | None = None,
        after: float = 0.0,
        is_key: bool = False,  # the server refuses the key
    ) -> None:
        super().__init__(redacted(why))
        self.blame, self.problem, self.is_key = blame, problem, is_key
        self.after = min(after, _MOST_ASKED_FOR)


class Outage:
    """Sends the requests to one server, and holds them back during an outage.

    `probe` raises FailedError if the server does not answer a good request. `minutes`: how long an
    outage may last. `retries`: how often a request is sent again that may be the cause of its
    failures; four times as often where the server says to each that it is busy, and answers others
    in between.
    """

    def __init__(
        self, address: str, probe: Callable[[], Awaitable[None]], minutes: float, retries: int
    ) -> None:
        self._address, self._probe = address, probe
        self._minutes, self._retries = minutes, retries
        self._probing: asyncio.Task[bool] | None = None
        self._since: float | None = None
        self._num_answered = 0  # requests
        self._num_refused = 0  # requests that wait after the server said that it is busy
        self._given_up = -1  # the number answered when the last request was given up

    @property
    def waiting_for(self) -> str:
        """The server that requests wait for, and for how long now; "" if they do not wait."""
        if self._since is None:
            return ""
        return f"{self._address} since {time.monotonic() - self._since:.0f} s"

    async def send_when_up(
        self, send: Callable[[], Awaitable[T]], tells_of_others: bool = True
    ) -> T:
        """Call `send` once the server is up, again if a failure is the server's; returns its
        result.

        `tells_of_others`: a server that answers this would answer other requests. Raises
        FailedError if the server answers the probe but not this request, OutageError if it stays
        unreachable.
        """
        failures = _Failures(answered=self._num_answered)
        try:
            while True:
                if self._since is not None:
                    await self._answers()
                try:
                    reply = await send()
                except FailedError as error:
                    await self._after(error, failures)
                else:
                    self._num_answered += int(tells_of_others)
                    return reply
        finally:
            self._num_refused -= int(failures.is_refused)

    async def _after(self, error: FailedError, failures: "_Failures") -> None:
        """Wait after a failure. Raises as `send_when_up` does where the request is not to be sent
        again."""
        if error.problem == "context_overflow":
            raise error
        is_over = self._is_over(failures.first)  # before the wait below, which has its own limit
        was_there = await self._answers()
        failures.num += 1
        if error.blame != "server" and failures.num > self._tries(error, was_there):
            raise error
        if error.blame == "server":
            self._num_refused += int(not failures.is_refused)
            failures.is_refused = True
            failures.num_alone += int(self._num_answered > failures.answered)
            if failures.num_alone >= _REFUSALS * max(1, self._retries):
                raise error
            if is_over:
                is_alone = was_there and self._is_alone(failures)
                self._given_up = self._num_answered
                raise error if is_alone else self._gone(error)
        failures.answered = self._num_answered
        failures.first = min(failures.first, time.monotonic())
        await asyncio.sleep(_wait(failures.num, error.after) if was_there else 0.0)

    def _is_alone(self, failures: "_Failures") -> bool:
        """True if the server, which answers the probe, refuses this request alone: it has answered
        others meanwhile; or there are no others, which is believed once until one is answered."""
        is_believed = self._given_up < self._num_answered
        return failures.num_alone > 0 or (self._num_refused == 1 and is_believed)

    def _tries(self, error: FailedError, was_there: bool) -> int:
        """The number of failures allowed to a request. One that a reachable server refuses is not
        sent again; after an outage it is, at least once, but not if it brings the server down
        again."""
        if was_there:
            return 0 if error.blame == "request" else self._retries
        return max(self._retries, 1)

    async def _answers(self) -> bool:
        """Wait until the server answers a probe, which all requests share. True if it answered the
        first one. Raises OutageError if it stays unreachable."""
        if self._probing is None or (self._probing.done() and not self._probing.exception()):
            self._probing = asyncio.create_task(self._until_it_answers())
        return await asyncio.shield(self._probing)

    async def _until_it_answers(self) -> bool:
        began = time.monotonic()
        for failures in count(1):
            try:
                await self._probe()
            except FailedError as error:
                self._since = began
                if error.is_key or self._is_over(began):
                    raise self._gone(error) from None
                await asyncio.sleep(_wait(failures, error.after))
            else:
                self._since = None
                return failures == 1
        raise AssertionError

    def _is_over(self, began: float) -> bool:
        return time.monotonic() - began >= 60 * self._minutes

    def _gone(self, error: FailedError) -> OutageError:
        waited = "" if error.is_key else f", for {self._minutes:g} minutes (engine.outage_minutes)"
        named = "" if str(error).startswith(self._address) else f"{self._address}: "
        return OutageError(f"{named}{error}{waited}; run the same command to resume")


@dataclass
class _Failures:
    """Those of one request. `num_alone`: how often it was refused after the server had answered
    another since the failure before; `first`: when the first was."""

    answered: int
    num: int = 0
    num_alone: int = 0
    is_refused: bool = False
    first: float = float("inf")


def _wait(failures: int, after: float) -> float:
    """The seconds to wait, with jitter, so that workers do not come back all at once."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 10))
    return max(after, longest * random.uniform(0.5, 1.0))
