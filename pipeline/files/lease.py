"""Leases: locks on folders of a warehouse, which expire unless their holder renews them.

The lease UPKEEP of a warehouse is exclusive. RUN, of a run's folder, is exclusive for that run;
while one is held, nothing that a removed run had planned is deleted.

A lease is a file that its holder creates (the first commit wins), renews by rewriting it, and
deletes. An expired one is taken over under the next number, so that only one of two takers gets it.
A suspended holder may notice that late: work under a lease must be safe when two processes do it.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from upath import UPath

from pipeline.files.storage import (
    commit,
    delete,
    delete_if_empty,
    exists,
    has_ended,
    ignore_refusals,
    is_remote,
    list_paths,
    read_object,
    write,
)

UPKEEP, RUN = "upkeep", "run"
SECONDS = 60.0  # a lease that is not renewed for so long expires


class Lease:
    """A lease that this process holds, until it releases it or `is_held` returns False."""

    def __init__(self, folder: UPath, name: str, number: int) -> None:
        self._folder, self._name = folder, name
        self._path = folder / f"{name}.{number}.lease"
        self._token = uuid.uuid4().hex
        self._ended = threading.Event()
        self._lock = threading.Lock()  # a late renewal must not undo the release

    def take(self) -> bool:
        """Create the file; False if another process was first, or has taken over meanwhile."""
        return commit(self._path, self._content()) and self.is_held()

    def is_held(self) -> bool:
        """True if no other process has taken the lease over. Raises StorageError."""
        is_newest = [*_files(self._folder, self._name).values()][-1:] == [self._path]
        return is_newest and read_object(self._path).get("token") == self._token

    def renew(self) -> None:
        """Renew the lease again and again until its release; a renewal that fails is skipped."""
        while not self._ended.wait(SECONDS / 4):
            with ignore_refusals(), self._lock:
                if not self._ended.is_set() and self.is_held():
                    write(self._path, self._content())

    def release(self) -> None:
        """Release the lease; if that fails, it expires by itself."""
        self._ended.set()
        with ignore_refusals(), self._lock:
            if self.is_held():
                for file in _files(self._folder, self._name).values():  # also of dead holders
                    delete(file)

    def _content(self) -> bytes:
        host, pid, expires_at = socket.gethostname(), os.getpid(), time.time() + SECONDS
        fields = {"token": self._token, "host": host, "pid": pid, "expires_at": expires_at}
        return json.dumps(fields).encode()


@contextmanager
def lease(folder: UPath, name: str) -> Iterator[Lease | None]:
    """Hold the lease `name` of a folder in the `with` block; yields None if another process holds
    it. The folder is made, and deleted again if nothing else was written there. Raises
    StorageError."""
    files = _files(folder, name)
    new = [] if is_remote(folder) else [f for f in (folder, *folder.parents) if not exists(f)]
    taken = Lease(folder, name, max(files, default=0) + 1)
    if holder(folder, name) is not None or not taken.take():
        yield None
        return
    threading.Thread(target=taken.renew, daemon=True, name=f"lease {name}").start()
    try:
        yield taken
    finally:
        taken.release()
        for above in new:
            delete_if_empty(above)


def holder(folder: UPath, name: str) -> str | None:
    """The process that holds the lease, as host-pid. None also if the lease has expired, if its
    holder is known to have ended, and if the newest of its files is no lease."""
    files = _files(folder, name)
    content = read_object(files[max(files)]) if files else {}
    try:
        process = f"{content['host']}-{int(content['pid'])}"
        is_fresh = float(content["expires_at"]) >= time.time()
    except (KeyError, TypeError, ValueError):
        return None
    return process if is_fresh and not has_ended(process) else None


def is_a_run_at_work(warehouse: UPath) -> bool:
    folders = {file.parent for file in list_paths(warehouse / "runs", f"*/{RUN}.*.lease")}
    return any(holder(folder, RUN) for folder in folders)


def _files(folder: UPath, name: str) -> dict[int, UPath]:
    """The files of a lease by number, the newest last."""
    files = ((f.name.rsplit(".", 2)[1], f) for f in list_paths(folder, f"{name}.*.lease"))
    return dict(sorted((int(number), f) for number, f in files if number.isdecimal()))
