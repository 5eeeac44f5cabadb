"""A time limit that does not count the time in which this process was suspended."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
_SUSPENDED = 5.0  # seconds that an event loop is never late by, however busy it is


async def wait_excluding_suspend(awaited: Awaitable[T], seconds: float | None) -> T:
    """The result of `awaited`, which must come within `seconds`; None: no limit.

    Raises TimeoutError, and cancels `awaited`. If the end of the limit is noticed late, the process
    was suspended (SIGSTOP, a machine that slept): a result that has arrived meanwhile is returned,
    else the time starts again.
    """
    task = asyncio.ensure_future(awaited)
    try:
        while True:
            began = time.monotonic()
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                return task.result()
            if seconds is None or time.monotonic() - began - seconds < _SUSPENDED:
                raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # else asyncio reports one that nobody has asked for
