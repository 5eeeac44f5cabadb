"""Leases: who of several processes may do something to a warehouse, by name.

A lease is a file that its holder creates (the first commit wins) and renews by rewriting it.
One that has expired is taken over under the next number, so that of two who want it one
gets it. A holder that was suspended may learn of that late: what is done under a lease must be safe
when two do it, and only wasteful, or ask `has_lapsed` before.
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

from pipeline.json_files import read_object
from pipeline.place import commit, delete, listed, write
from pipeline.retries import advisory

SECONDS = 60.0  # after which a lease that is not renewed expires
_NUMBER = re.compile(r"(?P<name>.+)\.(?P<number>[1-9]\d{0,15})\.lease")


class Held:
    """A lease that this process holds, until it ends or `is_held` is found to be false."""

    def __init__(self, path: UPath, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._token = uuid.uuid4().hex
        self._expires_at = 0.0  # as written last
        self._has_lapsed = False
        self._ended = threading.Event()
        self._lock = threading.Lock()  # a renewal that is late must not undo the release

    def take(self) -> bool:
        """Create the file; false where another process was first, or has gone on meanwhile."""
        self._expires_at = time.time() + self._seconds
        return commit(self._path, self._content(self._expires_at)) and self.is_held()

    def is_held(self) -> bool:
        """Whether no other process has taken the lease over. Raises StorageError."""
        newest = _newest(self._path.parent, _name(self._path))
        return newest == self._path and read_object(newest).get("token") == self._token

    def renew(self) -> None:
        """Renew the lease until the end. A renewal that fails is made up for by the next."""
        while not self._ended.wait(self._seconds / 4):
            self.renew_once()

    def renew_once(self) -> None:
        """Renew the lease, unless it has ended or is another's. A lapse is not undone by it."""
        with advisory(), self._lock:
            if not self._ended.is_set() and self.is_held():
                expires_at = time.time() + self._seconds
                write(self._path, self._content(expires_at))
                # Last: storage may have been slow, or this process suspended, until here.
                self._has_lapsed = self.has_lapsed()
                self._expires_at = expires_at

    def has_lapsed(self) -> bool:
        """Whether the lease has ever expired, as this process was suspended or storage refused its
        renewal: others may have gone on as if nobody held it, without taking it over."""
        return self._has_lapsed or time.time() >= self._expires_at

    def release(self) -> None:
        """Leave the lease to the next; where that fails it ends by itself."""
        self._ended.set()
        with advisory(), self._lock:
            if self.is_held():
                write(self._path, self._content(0.0))

    def _content(self, expires_at: float) -> bytes:
        host, pid = socket.gethostname(), os.getpid()
        fields = {"token": self._token, "host": host, "pid": pid, "expires_at": expires_at}
        return json.dumps(fields).encode()


@contextmanager
def lease(folder: UPath, name: str, seconds: float = SECONDS) -> Iterator[Held | None]:
    """Hold the lease `name` of a folder in the `with` block; null where another process holds it.

    `seconds`: it expires, and may be taken over, when it is not renewed for that long. Raises
    StorageError where the lease cannot be read or written.
    """
    newest = _newest(folder, name)
    if newest is not None and _is_valid(read_object(newest)):
        yield None
        return
    number = _number(newest) + 1 if newest is not None else 1
    held = Held(folder / f"{name}.{number}.lease", seconds)
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
    """The process, as host-number, that holds the lease; null where none does."""
    newest = _newest(folder, name)
    found = read_object(newest) if newest is not None else {}
    return f"{found['host']}-{found['pid']}" if _is_valid(found) else None


def times_taken(folder: UPath, name: str) -> int:
    """How often the lease has been taken so far."""
    newest = _newest(folder, name)
    return 0 if newest is None else _number(newest)


def _is_valid(found: dict[str, Any]) -> bool:
    """Whether the lease has not expired, nor its holder ended, as far as this machine knows. A file
    that is no lease is nobody's."""
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
    files = [file for file in listed(folder, f"{name}.*.lease") if _name(file) == name]
    return max(files, key=_number, default=None)


def _name(file: UPath) -> str:
    found = _NUMBER.fullmatch(file.name)
    return found["name"] if found else ""


def _number(file: UPath) -> int:
    found = _NUMBER.fullmatch(file.name)
    return int(found["number"]) if found else 0


def _delete_before(folder: UPath, name: str, number: int) -> None:
    with advisory():
        for file in listed(folder, f"{name}.*.lease"):
            if _name(file) == name and _number(file) < number:
                delete(file)
