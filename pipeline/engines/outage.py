"""Distinguish a server's outage from a request that fails by itself, and wait for the server.

After every failure the server is probed by a request that it has answered before.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Literal, TypeVar

from pipeline.core.errors import OutageError, Problem
from pipeline.core.redaction import redacted

T = TypeVar("T")
Blame = Literal["server", "either", "request"]
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds; waits double from one to the other
_MOST_ASKED_FOR = 60.0  # seconds of waiting that a server may ask for (Retry-After)


class FailedError(Exception):
    """A request without a reply. `blame`: the possible cause. `after`: the seconds that the server
    asks to wait."""

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
    failures.
    """

    def __init__(
        self, address: str, probe: Callable[[], Awaitable[None]], minutes: float, retries: int
    ) -> None:
        self._address, self._probe = address, probe
        self._minutes, self._retries = minutes, retries
        self._probing: asyncio.Task[bool] | None = None
        self._since: float | None = None

    @property
    def waiting_for(self) -> str:
        """The server that requests wait for, and for how long now; "" if they do not wait."""
        if self._since is None:
            return ""
        return f"{self._address} since {time.monotonic() - self._since:.0f} s"

    async def send_when_up(self, send: Callable[[], Awaitable[T]]) -> T:
        """Call `send` once the server is up, again if a failure is the server's; returns its
        result.

        Raises FailedError if the server answers the probe but not this request, OutageError if it
        stays unreachable.
        """
        failures, first = 0, float("inf")
        while True:
            if self._since is not None:
                await self._answers()
            try:
                return await send()
            except FailedError as error:
                if error.problem == "context_overflow":
                    raise
                # Computed before the wait below, which has a limit of its own.
                failures, is_over = failures + 1, self._is_over(first)
                was_there = await self._answers()
                if error.blame != "server" and failures > self._tries(error, was_there):
                    raise
                if error.blame == "server" and is_over:
                    raise self._gone(error) from None
                first = min(first, time.monotonic())
                await asyncio.sleep(_wait(failures, error.after) if was_there else 0.0)

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
        waited = "" if error.is_key else f" for {self._minutes:g} minutes (engine.outage_minutes)"
        named = "" if str(error).startswith(self._address) else f"{self._address}: "
        return OutageError(f"{named}{error}{waited}; run the same command to resume")


def _wait(failures: int, after: float) -> float:
    """The seconds to wait, with jitter, so that workers do not come back all at once."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 10))
    return max(after, longest * random.uniform(0.5, 1.0))
