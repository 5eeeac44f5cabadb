"""Leases: locks by name on a warehouse, which expire unless their holder renews them.

A lease is a file that its holder creates (the first commit wins) and renews by rewriting it. An
expired one is taken over under the next number, so that only one of two takers gets it. A holder
that was suspended may notice that late: work done under a lease must be safe, if wasteful, when two
processes do it, or check `has_lapsed` first.
"""

import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from upath import UPath

from pipeline.files.json_files import read_object
from pipeline.files.place import commit, delete, list_paths, write
from pipeline.files.storage_retries import ignore_refusals

SECONDS = 60.0  # after which a lease that is not renewed expires
_NUMBER = re.compile(r"(?P<name>.+)\.(?P<number>[1-9]\d{0,15})\.lease")


class Lease:
    """A lease that this process holds, until it ends or `is_held` returns false."""

    def __init__(self, path: UPath, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._token = uuid.uuid4().hex
        self._expires_at = 0.0  # as last written
        self._has_lapsed = False
        self._ended = threading.Event()
        self._lock = threading.Lock()  # a renewal that is late must not undo the release

    def take(self) -> bool:
        """Create the file; false if another process was first, or has taken over meanwhile."""
        self._expires_at = time.time() + self._seconds
        return commit(self._path, self._content(self._expires_at)) and self.is_held()

    def is_held(self) -> bool:
        """True if no other process has taken the lease over. Raises StorageError."""
        newest = _newest(self._path.parent, _name(self._path))
        return newest == self._path and read_object(newest).get("token") == self._token

    def renew(self) -> None:
        """Renew the lease until the end. If a renewal fails, the next one makes up for it."""
        while not self._ended.wait(self._seconds / 4):
            self.renew_once()

    def renew_once(self) -> None:
        """Renew the lease, unless it has ended or is another's. Does not undo a lapse."""
        with ignore_refusals(), self._lock:
            if not self._ended.is_set() and self.is_held():
                expires_at = time.time() + self._seconds
                write(self._path, self._content(expires_at))
                # Last: storage may have been slow, or this process suspended, until here.
                self._has_lapsed = self.has_lapsed()
                self._expires_at = expires_at

    def has_lapsed(self) -> bool:
        """True if the lease has ever expired, because this process was suspended or storage refused
        its renewal: others may have proceeded as if nobody held it, without taking it over."""
        return self._has_lapsed or time.time() >= self._expires_at

    def release(self) -> None:
        """Release the lease; if that fails, it expires by itself."""
        self._ended.set()
        with ignore_refusals(), self._lock:
            if self.is_held():
                write(self._path, self._content(0.0))

    def _content(self, expires_at: float) -> bytes:
        host, pid = socket.gethostname(), os.getpid()
        fields = {"token": self._token, "host": host, "pid": pid, "expires_at": expires_at}
        return json.dumps(fields).encode()


@contextmanager
def lease(folder: UPath, name: str, seconds: float = SECONDS) -> Iterator[Lease | None]:
    """Hold the lease `name` of a folder in the `with` block; None if another process holds it.

    `seconds`: it expires, and may be taken over, when it is not renewed for that long. Raises
    StorageError if the lease cannot be read or written.
    """
    newest = _newest(folder, name)
    if newest is not None and _is_valid(read_object(newest)):
        yield None
        return
    number = _number(newest) + 1 if newest is not None else 1
    held = Lease(folder / f"{name}.{number}.lease", seconds)
    if not held.take():
        yield None
        return
    _delete_before(folder, name, number)
    keeper = threading.Thread(target=held.renew, daemon=True, name=f"lease {name}")
    keeper.start()
    try:
        yield held
    finally:
        held.release()


def holder(folder: UPath, name: str) -> str | None:
    """The process that holds the lease, as host-pid; None if none does."""
    newest = _newest(folder, name)
    found = read_object(newest) if newest is not None else {}
    return f"{found['host']}-{found['pid']}" if _is_valid(found) else None


def times_taken(folder: UPath, name: str) -> int:
    """The number of times that the lease has been taken so far."""
    newest = _newest(folder, name)
    return 0 if newest is None else _number(newest)


def _is_valid(found: dict[str, Any]) -> bool:
    """True if the lease has not expired and its holder, if on this machine, still runs. False for a
    file that is no lease."""
    try:
        if float(found["expires_at"]) < time.time():
            return False
        return found["host"] != socket.gethostname() or _is_running(int(found["pid"]))
    except (KeyError, TypeError, ValueError):
        return False


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _newest(folder: UPath, name: str) -> UPath | None:
    files = [file for file in list_paths(folder, f"{name}.*.lease") if _name(file) == name]
    return max(files, key=_number, default=None)


def _name(file: UPath) -> str:
    found = _NUMBER.fullmatch(file.name)
    return found["name"] if found else ""


def _number(file: UPath) -> int:
    found = _NUMBER.fullmatch(file.name)
    return int(found["number"]) if found else 0


def _delete_before(folder: UPath, name: str, number: int) -> None:
    with ignore_refusals():
        for file in list_paths(folder, f"{name}.*.lease"):
            if _name(file) == name and _number(file) < number:
                delete(file)
