"""File operations that fail on purpose, in a process and all that it starts (Ray's workers, too):
with this folder in PYTHONPATH, GISTMILL_FAULTS holds a JSON list of faults, see `_Fault`."""

import builtins
import errno as errors
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

_exists = os.path.exists
_CHANGES = ("open", "fsync", "link", "replace", "unlink", "mkdir")


@dataclass
class _Fault:
    # open (for writing), read (open for reading), write, fsync, link, replace, listdir, stat,
    # unlink or mkdir; change: any of those that change something
    operation: str
    path: str = "*"  # a pattern of the whole path, as fnmatch has it
    errno: str | None = None  # a name such as ENOSPC; without one the operation is only slow
    is_done: bool = False  # all the same, as over a network that loses the answer
    is_killed: bool = False  # the process, instead
    seconds: float = 0.0  # that each one takes before it fails or goes on
    times: int = sys.maxsize  # that it fails, counted per process
    skip: int = 0  # operations before the first one that fails, counted per process
    after: str | None = None  # a path: only while it exists
    until: str | None = None  # a path: only while it does not
    seen: int = 0

    def strike(self, operation: str, path: str) -> None:
        operations = _CHANGES if self.operation == "change" else (self.operation,)
        if operation not in operations or not fnmatch(path, self.path) or not self.is_on():
            return
        self.seen += 1
        if self.skip < self.seen <= self.skip + self.times:
            time.sleep(self.seconds)
            if self.is_killed:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.errno:
                number = getattr(errors, self.errno)
                raise OSError(number, os.strerror(number), path)

    def is_on(self) -> bool:
        has_begun = self.after is None or _exists(self.after)
        is_over = self.until is not None and _exists(self.until)
        return has_begun and not is_over


FAULTS = [_Fault(**fault) for fault in json.loads(os.environ.get("GISTMILL_FAULTS", "[]"))]


def _strike(operation: str, path: Any, is_done: bool = False) -> None:
    if isinstance(path, (str, bytes, os.PathLike)):
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  # pathlib asks the file system
        for fault in FAULTS:
            if fault.is_done == is_done:
                fault.strike(operation, name)


def _opening(real: Callable[..., Any]) -> Callable[..., Any]:
    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        is_written = not set(mode).isdisjoint("wax+")
        _strike("open" if is_written else "read", file)
        opened = real(file, mode, *args, **kwargs)
        if is_written and any(fault.operation == "write" for fault in FAULTS):
            opened.write = partial(_write, file, opened.write)
        return opened

    return open


def _write(path: Any, write: Callable[[Any], Any], content: Any) -> Any:
    _strike("write", path)
    return write(content)


def _failing(operation: str, real: Callable[..., Any], which: int = 0) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        path = args[which] if len(args) > which else None
        _strike(operation, path)
        result = real(*args, **kwargs)
        _strike(operation, path, is_done=True)
        return result

    return call


def _syncing(real: Callable[..., None]) -> Callable[..., None]:
    def fsync(number: int) -> None:
        _strike("fsync", Path(f"/proc/self/fd/{number}").readlink())
        real(number)

    return fsync


if FAULTS:
    builtins.open = io.open = _opening(io.open)
    os.fsync = _syncing(os.fsync)
    os.scandir = _failing("listdir", os.scandir)
    for name in ("listdir", "stat", "unlink", "mkdir"):
        setattr(os, name, _failing(name, getattr(os, name)))
    for name in ("link", "replace"):  # by the name that is made
        setattr(os, name, _failing(name, getattr(os, name), which=1))
