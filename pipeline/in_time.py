"""A time limit that does not count the time in which this process was suspended."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
_SUSPENDED = 5.0  # seconds that an event loop is never late by, however busy it is


async def in_time(awaited: Awaitable[T], seconds: float | None) -> T:
    """What is awaited, within so many seconds; null: whenever it comes.

    Raises TimeoutError, and cancels it. Where the end of the time is noticed late, the process was
    suspended (SIGSTOP, a machine that slept): what came meanwhile is taken, and the time begins
    anew.
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
