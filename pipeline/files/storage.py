"""Files and folders, on this machine or behind any fsspec filesystem (s3://, gs://, hf:// ...).

Operations that fail for a transient reason are retried with exponential back-off and jitter for
`cluster.storage_seconds`. Storage that refuses for longer, or is full, read-only or forbidden,
raises StorageError. Operations block: on an event loop, call them in a thread.
"""

import errno
import json
import math
import os
import random
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar

from upath import UPath

from pipeline.core.errors import StorageError, UsageError

A = TypeVar("A")
B = TypeVar("B")
AnyPath = str | Path | UPath
_AT_ONCE = 16  # threads: an object store has a latency of tens of milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 8.0  # seconds; doubled each time, with jitter of half
_SECONDS_TO_REACH = 20.0  # at the start of a command, as an address may be a mistake
_TRANSIENT = {
    errno.EAGAIN, errno.EBUSY, errno.EHOSTUNREACH, errno.EINTR, errno.EIO, errno.EMFILE,
    errno.ENETDOWN, errno.ENETUNREACH, errno.ENFILE, errno.ESTALE,
    getattr(errno, "EREMOTEIO", -1),  # a Mac lacks it
}  # fmt: skip
ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
# Errors of object stores' libraries that are not OSErrors.
_OF_NETWORKS = (
    ("botocore.exceptions", "HTTPClientError"), ("botocore.exceptions", "ConnectionError"),
    ("aiohttp", "ClientError"), ("google.auth.exceptions", "TransportError"),
    ("gcsfs.retry", "HttpError"), ("httpx", "TransportError"), ("httpx2", "TransportError"),
)  # fmt: skip
_OF_SETTINGS = (
    ("botocore.exceptions", "BotoCoreError"), ("google.auth.exceptions", "GoogleAuthError"),
)  # fmt: skip

_seconds = 60.0  # of this process
_seconds_here: ContextVar[float] = ContextVar("seconds_here", default=math.inf)
# Local folders that are not made again once they are gone: a warehouse that was moved away would be
# in two places.
never_made: set[UPath] = set()
_HOST = socket.gethostname()


def as_path(path: AnyPath) -> UPath:
    """The path as a UPath; a local one is also a pathlib.Path. Raises UsageError if no filesystem
    for such an address is installed."""
    try:
        if not is_remote(local := UPath(path)):
            return local
        # Listings are not cached, so that files written by other machines are seen.
        return UPath(path, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from None


def is_remote(path: UPath) -> bool:
    return not isinstance(path, Path)


def read(path: UPath) -> bytes:
    """The content of a file. May raise FileNotFoundError."""
    return with_retries(path.read_bytes, path, ABSENT)


def read_object(path: UPath) -> dict[str, Any]:
    """The JSON object in a small file; empty if the file is missing or holds none."""
    try:
        content = json.loads(read(path))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def path_kind(path: UPath) -> str | None:
    """Either "file", "directory" or "other"; None if nothing is at the path."""
    # Not by `is_file` or `exists`: they return False if a store does not answer.
    try:
        mode = with_retries(path.stat, path, ABSENT).st_mode
    except ABSENT:
        return None
    return "file" if S_ISREG(mode) else "directory" if S_ISDIR(mode) else "other"


def exists(path: UPath) -> bool:
    """True for files and folders."""
    return path_kind(path) is not None


def modified_at(path: UPath) -> float:
    """The time a file was last written, as time.time(). May raise FileNotFoundError."""
    return float(with_retries(path.stat, path, ABSENT).st_mtime)


def file_size(path: UPath) -> int:
    """The size of a file in bytes. May raise FileNotFoundError."""
    return int(with_retries(path.stat, path, ABSENT).st_size)


def list_paths(folder: UPath, pattern: str = "*") -> list[UPath]:
    """The paths in a folder that match; empty if there is no such folder."""
    list_them = _remote_paths if is_remote(folder) else _local_paths
    return with_retries(partial(list_them, folder, pattern), folder)


def list_names(folder: UPath) -> list[str]:
    """The names in a folder; empty if there is no such folder."""
    if is_remote(folder):
        return [path.name for path in list_paths(folder)]
    return with_retries(partial(_local_names, folder), folder)


def _local_names(folder: UPath) -> list[str]:
    with suppress(*ABSENT):  # ten times faster than paths for 100,000 files
        return [entry.name for entry in os.scandir(str(folder))]
    return []


def _local_paths(folder: UPath, pattern: str) -> list[UPath]:
    # Not by pathlib's `glob`: it raises if a folder vanishes meanwhile, and takes far longer.
    first, _, rest = pattern.partition("/")
    paths = [folder / name for name in _local_names(folder) if fnmatchcase(name, first)]
    return [below for path in paths for below in _local_paths(path, rest)] if rest else paths


def _remote_paths(folder: UPath, pattern: str) -> list[UPath]:
    # Not by fsspec's `glob`: it leaves out what a store refuses to list.
    patterns = pattern.split("/")
    try:
        names = (folder.fs.find if "/" in pattern else folder.fs.ls)(folder.path, detail=False)
    except FileNotFoundError:
        return []
    root = folder.fs._strip_protocol(folder.path).rstrip("/") + "/"
    below = (name.removeprefix(root).split("/") for name in names if name.startswith(root))
    of_depth = (parts for parts in below if len(parts) == len(patterns))
    return [folder.joinpath(*ps) for ps in of_depth if all(map(fnmatchcase, ps, patterns))]


def map_files(
    function: Callable[[A], B], files: Iterable[A], folder: UPath | None = None
) -> list[B]:
    """Call `function` for every file; the results are in the order of `files`. In threads, unless
    the folder is local: a local file is read sooner than a thread starts."""
    if folder is not None and not is_remote(folder):
        return [*map(function, files)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, files))


def make_folder(path: UPath) -> None:
    """Make a local folder, and those above it, but none of `never_made`."""
    if path not in never_made and not path.is_dir():
        make_folder(path.parent)
        with_retries(partial(path.mkdir, exist_ok=True), path)


def commit(path: UPath, content: bytes) -> bool:
    """Create a file atomically unless it exists: locally a link to a synced temporary file,
    remotely one conditional PUT. True if it holds `content` now: this call created it, or an
    earlier attempt whose reply was lost."""

    def create() -> None:
        if is_remote(path):
            path.fs.pipe_file(path.path, content, mode="create")
            return
        with _written_beside(path, content, sync=True) as part:
            os.link(str(part), str(path))

    try:
        with_retries(create, path, (FileExistsError,))
    except FileExistsError:
        return read(path) == content
    return True


def write(path: UPath, content: bytes) -> None:
    """Write or replace a file atomically: readers see the old or the new content."""

    def attempt() -> None:
        if is_remote(path):
            path.fs.pipe_file(path.path, content)
            return
        with _written_beside(path, content, sync=False) as part:
            try:
                part.replace(path)
            except FileNotFoundError:
                # NFS repeats a rename whose answer was lost, and then reports a missing file.
                if path.read_bytes() != content:
                    raise

    with_retries(attempt, path)


def write_json(path: AnyPath, content: Mapping[str, Any]) -> None:
    write(as_path(path), json.dumps(content, indent=2, sort_keys=True).encode())


@contextmanager
def _written_beside(path: UPath, content: bytes, sync: bool) -> Iterator[UPath]:
    """A temporary file with the content in the folder of `path`, deleted afterwards."""
    make_folder(path.parent)
    part = path.with_name(part_name(path.name))
    try:
        with part.open("wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        yield part
    finally:
        with suppress(OSError):  # or it would hide why the file could not be written
            part.unlink(missing_ok=True)


def delete(path: UPath) -> None:
    with_retries(lambda: path.unlink(missing_ok=True), path)


def delete_folder(path: UPath) -> None:
    """Delete a folder and its content if it exists."""
    with suppress(FileNotFoundError):
        with_retries(lambda: path.fs.rm(path.path, recursive=True), path, ABSENT)


def delete_if_empty(path: UPath) -> None:
    """Delete a local folder if it is empty; an object store has no folders."""
    if not is_remote(path):
        with suppress(OSError):
            path.rmdir()


def process_name() -> str:
    return f"{_HOST}-{os.getpid()}"


def has_ended(name: str) -> bool:
    """True if the named process was on this machine and no longer runs."""
    host, _, pid = name.rpartition("-")
    if host != _HOST or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


def part_name(name: str) -> str:
    """A name for a temporary file, beside the file that it becomes."""
    return f".{name}.{uuid.uuid4().hex}.part"


def retry_for(seconds: float) -> None:
    """Set how many seconds this process retries operations: `cluster.storage_seconds`."""
    global _seconds
    _seconds = seconds


@contextmanager
def limit_retries(seconds: float) -> Iterator[None]:
    """Retry operations for at most `seconds` in the `with` block; 0: try them once."""
    token = _seconds_here.set(seconds)
    try:
        yield
    finally:
        _seconds_here.reset(token)


def with_retries(
    operation: Callable[[], A], path: UPath, raised: tuple[type[Exception], ...] = ()
) -> A:
    """The result of a file operation, which is retried. Raises the errors of `raised` unchanged,
    and others of filesystems as `refusal_error`."""
    # Not by tenacity: calling it takes as long as reading a small file.
    last, pause = time.monotonic() + min(_seconds, _seconds_here.get()), _FIRST_PAUSE
    while True:
        try:
            return operation()
        except raised:
            raise
        except filesystem_errors() as error:
            left = last - time.monotonic()
            if left <= 0 or not _is_transient(error):
                raise refusal_error(path, error) from error
        time.sleep(min(left, pause * random.uniform(0.5, 1.5)))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_transient(error: Exception) -> bool:
    if not isinstance(error, OSError):
        return isinstance(error, _imported(_OF_NETWORKS))
    if error.errno is None:  # as in errors of object stores' libraries
        return not isinstance(error, (*ABSENT, PermissionError, FileExistsError))
    return error.errno in _TRANSIENT or isinstance(error, (ConnectionError, TimeoutError))


def filesystem_errors() -> tuple[type[Exception], ...]:
    """OSError, and the errors of object stores' libraries that have been imported."""
    return (OSError, *_imported(_OF_NETWORKS + _OF_SETTINGS))


def _imported(errors: Iterable[tuple[str, str]]) -> tuple[type[Exception], ...]:
    named = [(sys.modules.get(library), name) for library, name in errors]
    # They are missing while another thread imports the module.
    return tuple(getattr(library, name) for library, name in named if hasattr(library, name))


def storage_errors() -> tuple[type[Exception], ...]:
    return (StorageError, *filesystem_errors())


def refusal_error(path: UPath | str, error: Exception) -> StorageError | UsageError:
    """An error in one line with the path and what to do; a UsageError if the name is too long."""
    reason = refusal_reason(error)
    if getattr(error, "errno", 0) == errno.ENAMETOOLONG:
        return UsageError(f"{str(path)[:80]}...: {reason}; take a shorter one")
    return StorageError(f"{path}: {reason}; put that right, then run the same command to resume")


def refusal_reason(error: Exception) -> str:
    if isinstance(error, StorageError) and isinstance(error.__cause__, Exception):
        return refusal_reason(error.__cause__)
    text = str(getattr(error, "strerror", None) or error)
    return " ".join(text.split()) or type(error).__name__


@contextmanager
def ignore_refusals() -> Iterator[None]:
    """Try the file operations in the `with` block once, and ignore a refusal."""
    try:
        with limit_retries(0):
            yield
    except storage_errors():  # not `suppress`: a library's errors are known once it is imported
        return


def unwritable(folder: UPath) -> UPath | None:
    """The path that prevents a local folder from being written; None if there is none."""
    if is_remote(folder):
        return None  # a remote store refuses when it is used
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return None if existing.is_dir() and os.access(str(existing), os.W_OK) else existing


@contextmanager
def refuse_unreachable_path(path: UPath, key: str) -> Iterator[None]:
    """Turn a filesystem's errors in the `with` block into UsageError naming the config key."""
    try:
        with limit_retries(_SECONDS_TO_REACH):
            yield
    except storage_errors() as error:
        raise UsageError(f"{key}={path}: cannot be reached ({refusal_reason(error)})") from None
