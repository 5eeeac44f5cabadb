"""Retries of file operations, and a record of those that storage refuses.

Transient errors are repeated with exponential back-off and jitter for `cluster.storage_seconds`;
the limit is checked between attempts, and an object store's library makes some of its own in each.
A full, read-only or forbidden disk is not tried again. An operation that stays refused raises
`StorageError`.
"""

import errno
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from upath import UPath

from pipeline.core.errors import StorageError, UsageError, proxies

T = TypeVar("T")
_DEFAULT_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 8.0  # seconds; doubled each time, with jitter of half
_TRANSIENT = {
    getattr(errno, name)
    for name in (
        "EAGAIN", "EBUSY", "EHOSTUNREACH", "EINTR", "EIO", "EMFILE", "ENETDOWN", "ENETUNREACH",
        "ENFILE", "EREMOTEIO", "ESTALE", "ETIMEDOUT",
    )
    if hasattr(errno, name)
}  # fmt: skip
ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_FOR_GOOD = (PermissionError, FileNotFoundError, FileExistsError, IsADirectoryError,
             NotADirectoryError)  # fmt: skip
_LIBRARIES = {  # module -> its errors that are no OSError, and those of them that may pass
    "botocore.exceptions": ("BotoCoreError", ("HTTPClientError", "ConnectionError")),
    "aiohttp": ("ClientError", ("ClientError",)),
    "google.auth.exceptions": ("GoogleAuthError", ("TransportError",)),
    "gcsfs.retry": ("HttpError", ()),
}
_TOO_MANY_REQUESTS, _SERVER_ERRORS = 429, 500
_FIXES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EFBIG: "raise the limit on the size of files",
    errno.EROFS: "make it writable",
    errno.EACCES: "grant access to it",
    errno.EPERM: "grant access to it",
    errno.ENOENT: "put the folder back",
}

_limit = _DEFAULT_SECONDS  # of this process
_within: ContextVar[float | None] = ContextVar("within", default=None)


def retry_for(seconds: float) -> None:
    """Set how long this process repeats a refused operation: `cluster.storage_seconds`."""
    global _limit
    _limit = seconds


@contextmanager
def limit_retries(seconds: float) -> Iterator[None]:
    """Repeat refused operations for at most `seconds` in the `with` block; 0: try them once."""
    token = _within.set(seconds)
    try:
        yield
    finally:
        _within.reset(token)


def with_retries(
    operation: Callable[[], T], path: UPath, raised: tuple[type[Exception], ...] = ()
) -> T:
    """The result of a file operation that may be repeated. It blocks: call it off the event loop.

    Raises the errors of `raised` as they are, and for all others of a filesystem StorageError, or
    UsageError for a name that is too long.
    """
    own = _within.get()
    last = time.monotonic() + (_limit if own is None else min(own, _limit))
    pause = _FIRST_PAUSE
    while True:
        try:
            return operation()
        except raised:
            raise
        except filesystem_errors() as error:
            left = last - time.monotonic()
            if left <= 0 or not is_transient(error):
                raise refusal_error(path, error) from error
        time.sleep(min(left, pause * random.uniform(0.5, 1.5)))
        pause = min(2 * pause, _LONGEST_PAUSE)


def filesystem_errors() -> tuple[type[Exception], ...]:
    """The errors of filesystems; those of an object store's library once it is imported."""
    return (
        OSError,
        *(found for m, (name, _) in _LIBRARIES.items() for found in _imported(m, name)),
    )


def storage_errors() -> tuple[type[Exception], ...]:
    """The errors of file operations, retried or not."""
    return (StorageError, *filesystem_errors())


def is_transient(error: Exception) -> bool:
    """True if the operation may succeed when it is repeated."""
    if isinstance(error, OSError):
        named = isinstance(error, (ConnectionError, TimeoutError)) or error.errno in _TRANSIENT
        # s3fs has no number for a reply such as 502.
        return named or (error.errno is None and not isinstance(error, _FOR_GOOD))
    code = str(getattr(error, "code", ""))  # gcsfs: the HTTP status
    if code.isdecimal():
        return int(code) >= _SERVER_ERRORS or int(code) == _TOO_MANY_REQUESTS
    passing = (found for m, (_, names) in _LIBRARIES.items() for found in _imported(m, *names))
    return isinstance(error, tuple(passing))


def refusal_error(path: UPath | str, error: Exception) -> StorageError | UsageError:
    """The error to raise for an operation that storage refuses, on one line with the path and what
    to do. A name that is too long is a UsageError, as it stays too long."""
    if getattr(error, "errno", None) == errno.ENAMETOOLONG:
        return UsageError(f"{str(path)[:80]}...: {refusal_reason(error)}; take a shorter one")
    other = "make sure that it answers" if is_transient(error) else "put that right"
    fix = _FIXES.get(getattr(error, "errno", None) or 0, other)
    if isinstance(error, PermissionError):
        fix = _FIXES[errno.EACCES]
    return StorageError(
        f"{path}: {refusal_reason(error)}; {fix}, then run the same command to resume"
    )


def refusal_reason(error: Exception) -> str:
    """The reason why an operation was refused, on one line."""
    if isinstance(error, StorageError) and isinstance(error.__cause__, Exception):
        return refusal_reason(error.__cause__)
    strerror = getattr(error, "strerror", None)
    reason = " ".join(str(strerror or error).split()) or type(error).__name__
    is_proxys = "proxy" in reason.lower() and proxies()
    return f"{reason}, which {' or '.join(proxies())} names" if is_proxys else reason


def _imported(module: str, *names: str) -> list[type[Exception]]:
    """The errors of a library, none before it is imported: another thread may be at that."""
    found = sys.modules.get(module)
    return [getattr(found, name) for name in names if hasattr(found, name)]


@contextmanager
def ignore_refusals() -> Iterator[None]:
    """Try the file operations in the `with` block once and ignore a refusal: for files whose loss
    costs little time."""
    with suppress(*storage_errors()), limit_retries(0):
        yield


@dataclass
class Advisory:
    """A record of the refusals of advisory files, such as progress and heartbeats, which are soon
    written or read again: a refusal raises no error.

    `count`, `since`: the refusals in a row until now, and when the first was (monotonic clock);
    `error`: the reason; `longest`: the longest outage that is over, as `state` returns it.
    """

    count: int = 0
    since: float = 0.0
    error: str = ""
    longest: dict[str, Any] | None = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Try the file operations in the `with` block once; record a refusal and go on."""
        try:
            with limit_retries(0):
                yield
        except storage_errors() as error:
            self.since = self.since if self.count else time.monotonic()
            self.count, self.error = self.count + 1, refusal_reason(error)
            return
        if self.count:
            self.longest = max(self.longest or self._now(), self._now(), key=itemgetter("seconds"))
            self.count = 0

    @property
    def is_refused(self) -> bool:
        """True if the last block was refused."""
        return bool(self.count)

    def state(self) -> dict[str, Any] | None:
        """The present outage, else the longest one, as JSON; None if there was none."""
        return self._now() if self.count else self.longest

    def _now(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self.since, 1)
        return {"count": self.count, "seconds": seconds, "error": self.error}
