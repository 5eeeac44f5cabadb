"""File operations that fail on purpose, in a process and all that it starts (Ray's workers, too).

With this folder in PYTHONPATH, GISTMILL_FAULTS holds a JSON list of faults:
  operation  open (for writing), read (open for reading), write, fsync, link, replace, listdir,
             stat, unlink or mkdir; change: any of those that change something
  path       a pattern of the whole path, as fnmatch has it; default *
  errno      a name such as ENOSPC; without one the operation is only slow
  is_done    true: it is done all the same, as over a network that loses the answer; for link,
             replace, unlink and mkdir
  is_killed  true: the process is killed instead
  seconds    how long each one takes before it fails or goes on; default 0
  times      how many fail, then they go on; counted per process; default all
  skip       how many go on before the first one fails; counted per process; default 0
  after, until  paths: only while the first exists and the second does not
  process    a pattern of the process's command line; default *
"""

import builtins
import errno
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

_exists = os.path.exists
_COMMAND_LINE = " ".join([*sys.orig_argv, *sys.argv])


_CHANGES = ("open", "fsync", "link", "replace", "unlink", "mkdir")


class _Fault:
    def __init__(
        self,
        operation: str,
        path: str = "*",
        errno: str | None = None,
        seconds: float = 0.0,
        times: int = sys.maxsize,
        skip: int = 0,
        after: str | None = None,
        until: str | None = None,
        process: str = "*",
        is_done: bool = False,
        is_killed: bool = False,
    ) -> None:
        self.operation, self.path, self.errno, self.seconds = operation, path, errno, seconds
        self.times, self.skip, self.seen = times, skip, 0
        self.after, self.until, self.process = after, until, process
        self.is_done, self.is_killed = is_done, is_killed

    def strike(self, operation: str, path: str) -> None:
        is_meant = operation in _CHANGES if self.operation == "change" else (
            operation == self.operation)  # fmt: skip
        if not is_meant or not fnmatch(path, self.path) or not self.is_on():
            return
        self.seen += 1
        if self.skip < self.seen <= self.skip + self.times:
            time.sleep(self.seconds)
            if self.is_killed:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.errno:
                number = getattr(errno, self.errno)
                raise OSError(number, os.strerror(number), path)

    def is_on(self) -> bool:
        has_begun = self.after is None or _exists(self.after)
        is_over = self.until is not None and _exists(self.until)
        return has_begun and not is_over and fnmatch(_COMMAND_LINE, self.process)


FAULTS = [_Fault(**fault) for fault in json.loads(os.environ.get("GISTMILL_FAULTS", "[]"))]


def _strike(operation: str, path: Any, is_done: bool = False) -> None:
    if isinstance(path, (str, bytes, os.PathLike)):
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  # pathlib asks the file system
        for fault in FAULTS:
            if fault.is_done == is_done:
                fault.strike(operation, name)


class _Written:
    """A file whose writes may fail."""

    def __init__(self, file: Any, path: Any) -> None:
        self._file, self._path = file, path

    def write(self, content: Any) -> Any:
        _strike("write", self._path)
        return self._file.write(content)

    def __enter__(self) -> "_Written":
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __iter__(self) -> Any:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _opening(real: Callable[..., Any]) -> Callable[..., Any]:
    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        is_written = not set(mode).isdisjoint("wax+")
        _strike("open" if is_written else "read", file)
        opened = real(file, mode, *args, **kwargs)
        follow = is_written and any(fault.operation == "write" for fault in FAULTS)
        return _Written(opened, file) if follow else opened

    return open


def _failing(operation: str, real: Callable[..., Any], which: int = 0) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > which:
            _strike(operation, args[which])
        found = real(*args, **kwargs)
        if len(args) > which:
            _strike(operation, args[which], is_done=True)
        return found

    return call


def _syncing(real: Callable[[int], None]) -> Callable[[int], None]:
    def fsync(number: int) -> None:
        _strike("fsync", Path(f"/proc/self/fd/{number}").readlink())
        real(number)

    return fsync


def _replace(module: Any, name: str, function: Any) -> None:
    setattr(module, name, function)


if FAULTS:
    opening = _opening(io.open)
    for module in (builtins, io):
        _replace(module, "open", opening)
    _replace(os, "fsync", _syncing(os.fsync))
    for name, operation in (("scandir", "listdir"), ("listdir", "listdir"), ("stat", "stat"),
                            ("unlink", "unlink"), ("mkdir", "mkdir")):  # fmt: skip
        _replace(os, name, _failing(operation, getattr(os, name)))
    for name in ("link", "replace"):  # by the name that is made
        _replace(os, name, _failing(name, getattr(os, name), which=1))
