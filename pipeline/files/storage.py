"""Files and folders, on this machine or behind any fsspec filesystem (s3://, gs://, hf:// ...), and
the retries of their operations.

Transient errors are repeated with exponential back-off and jitter for `cluster.storage_seconds`;
the limit is checked between attempts, and an object store's library makes some of its own in each.
A full, read-only or forbidden disk is not tried again. An operation that stays refused raises
`StorageError`. Only the local appends of a journal, which is advisory, and the marker of a
submitted job are not repeated. Operations block: on an event loop, call them in a thread. A mistake
in a path that a user names is a UsageError with the key in the command's words.
"""

import errno
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar
from unicodedata import normalize

from upath import UPath

from pipeline.core.errors import StorageError, UsageError, proxies
from pipeline.files.processes import is_abandoned, part_name

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


A = TypeVar("A")
B = TypeVar("B")
AnyPath = str | Path | UPath
_never_made: set[UPath] = set()
_AT_ONCE = 16  # threads: an object store has a latency of tens of milliseconds


def as_path(path: AnyPath) -> UPath:
    """The path as a UPath; a local one is a pathlib.Path as well, and as the disk spells it.

    Raises UsageError where no filesystem for such an address is installed.
    """
    try:
        found = UPath(path)
        # Listings are not cached, so that files written by other machines are seen.
        return UPath(path, use_listings_cache=False) if is_remote(found) else _as_spelled(found)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from None


def _as_spelled(path: UPath) -> UPath:
    """The path as its file system spells it, in NFC or NFD; as it is where nothing is there. Macs
    take letters and their accents apart, keyboards do not."""
    with suppress(OSError):  # of a name that no file can have
        if str(path).isascii() or path.exists():
            return path
        folder, name = _as_spelled(path.parent), normalize("NFC", path.name)
        return next(
            (own for own in folder.iterdir() if normalize("NFC", own.name) == name),
            folder / path.name,
        )
    return path


def is_remote(path: UPath) -> bool:
    """True if the path is not in this machine's file system."""
    return not isinstance(path, Path)


def read(path: UPath) -> bytes:
    """The content of a file. Raises FileNotFoundError and StorageError."""
    return with_retries(path.read_bytes, path, ABSENT)


def read_object(path: UPath) -> dict[str, Any]:
    """The JSON object in a small file; empty if the file is missing, damaged or no JSON object.
    Raises StorageError."""
    try:
        found = json.loads(read(path))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def make_folder(path: UPath) -> None:
    """Make a local folder, and those above it. Raises StorageError."""
    with_retries(lambda: prepare_folder(path), path)


def prepare_folder(path: UPath) -> None:
    """Make a local folder to write in, and those above it, once. Raises OSError."""
    if path in _never_made:
        return
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:
        prepare_folder(path.parent)
        path.mkdir(exist_ok=True)


def never_make(folder: UPath) -> None:
    """From now on write below a local folder only while it is there: made again where it was moved
    away, it would hold a part of what belongs into the other."""
    _never_made.add(folder)


def make_again(folder: UPath) -> None:
    """Take `never_make` back."""
    _never_made.discard(folder)


def is_file(path: UPath) -> bool:
    """True if there is a file at the path. Raises StorageError."""
    return path_kind(path) == "file"


def exists(path: UPath) -> bool:
    """True if there is a file or folder at the path. Raises StorageError."""
    return path_kind(path) is not None


def list_paths(folder: UPath, pattern: str = "*") -> list[UPath]:
    """The paths in a folder that match; empty if there is no such folder. Raises StorageError."""
    if is_remote(folder):
        return with_retries(lambda: _matching(folder, pattern), folder)
    return with_retries(lambda: _matching_here(folder, pattern), folder)


def list_names(folder: UPath) -> list[str]:
    """The names in a folder; empty if there is no such folder. Raises StorageError."""
    if is_remote(folder):
        return [path.name for path in list_paths(folder)]
    return with_retries(lambda: _names_here(folder), folder)


def _names_here(folder: UPath) -> list[str]:
    with suppress(*ABSENT):  # ten times faster than paths for 100,000 files
        return [entry.name for entry in os.scandir(str(folder))]
    return []


def _matching_here(folder: UPath, pattern: str) -> list[UPath]:
    # Not by pathlib's `glob`: it raises where a folder goes meanwhile, and takes several times as
    # long, while a worker lists folders for each unit.
    own, _, rest = pattern.partition("/")
    if own == "**":
        walk = os.walk(str(folder), onerror=_raise_unless_absent)
        return [UPath(top, n) for top, _, names in walk for n in names if fnmatchcase(n, rest)]
    found = [folder / name for name in _names_here(folder) if fnmatchcase(name, own)]
    return [path for one in found for path in _matching_here(one, rest)] if rest else found


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, ABSENT):
        raise error


def path_kind(path: UPath) -> str | None:
    """The kind of what is at the path: file, directory or other; None if nothing is. Raises
    StorageError."""
    # Not by fsspec's `isfile`: if a store does not answer, it returns False.
    try:
        if is_remote(path):
            return str(with_retries(lambda: path.fs.info(path.path)["type"], path, ABSENT))
        mode = with_retries(path.stat, path, ABSENT).st_mode
    except ABSENT:
        return None
    return "file" if S_ISREG(mode) else "directory" if S_ISDIR(mode) else "other"


def _matching(folder: UPath, pattern: str) -> list[UPath]:
    # Not by fsspec's `glob`: it leaves out what a store refuses to list.
    patterns = pattern.split("/")
    try:
        list_them = folder.fs.find if len(patterns) > 1 else folder.fs.ls
        names = list_them(folder.path, detail=False)
    except FileNotFoundError:
        return []
    root = folder.fs._strip_protocol(folder.path).rstrip("/") + "/"
    parts = [name.removeprefix(root).split("/") for name in names if name.startswith(root)]
    return [
        folder.joinpath(*own)
        for own in parts
        if len(own) == len(patterns) and all(map(fnmatchcase, own, patterns))
    ]


def modified_at(path: UPath) -> float:
    """The time a file was last written, as time.time(). Raises FileNotFoundError and
    StorageError."""
    return float(with_retries(lambda: path.stat().st_mtime, path, ABSENT))


def file_size(path: UPath) -> int:
    """The size of a file in bytes. Raises FileNotFoundError and StorageError."""
    return int(with_retries(lambda: path.stat().st_size, path, ABSENT))


def delete(path: UPath) -> None:
    """Delete a file, if it is there. Raises StorageError."""
    with_retries(lambda: path.unlink(missing_ok=True), path)


def delete_if_empty(path: UPath) -> None:
    """Delete a local folder that has nothing in it; an object store has no folders."""
    if not is_remote(path):
        with suppress(OSError):
            path.rmdir()


def delete_folder(path: UPath) -> None:
    """Delete a folder and all in it, if it is there. Raises StorageError."""
    with suppress(FileNotFoundError):
        with_retries(lambda: path.fs.rm(path.path, recursive=True), path, ABSENT)


def commit(path: UPath, content: bytes) -> bool:
    """Create a file atomically unless it exists. True if it holds `content` now: this call created
    it, or an earlier attempt whose reply was lost. Raises StorageError.

    Locally a synced temporary file is linked to the name; remotely one conditional PUT.
    """
    create = _put if is_remote(path) else _link
    return with_retries(lambda: create(path, content), path) or read(path) == content


def _put(path: UPath, content: bytes) -> bool:
    try:
        path.fs.pipe_file(path.path, content, mode="create")
    except FileExistsError:
        return False
    return True


def _link(path: UPath, content: bytes) -> bool:
    with _written_beside(path, content, sync=True) as part:
        try:
            os.link(str(part), str(path))
        except FileExistsError:
            return False
    return True


def write(path: UPath, content: bytes) -> None:
    """Write or replace a file atomically: readers see the old or the new content. Raises
    StorageError."""

    def attempt() -> None:
        if is_remote(path):
            path.fs.pipe_file(path.path, content)
        else:
            with _written_beside(path, content, sync=False) as part:
                _rename(part, path, content)

    with_retries(attempt, path)


def _rename(part: UPath, path: UPath, content: bytes) -> None:
    try:
        part.replace(path)
    except FileNotFoundError:
        # NFS sends a rename again whose answer was lost, and is told that there is no such file.
        if path.read_bytes() != content:
            raise


def write_json(path: AnyPath, content: Mapping[str, Any]) -> None:
    """Write or replace a small JSON file, as `write` does."""
    write(as_path(path), json.dumps(content, indent=2, sort_keys=True).encode())


@contextmanager
def _written_beside(path: UPath, content: bytes, sync: bool) -> Iterator[UPath]:
    """A temporary file with the content in the folder of `path`, deleted afterwards."""
    prepare_folder(path.parent)
    part = path.with_name(part_name(path.name))
    try:
        with part.open("wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        yield part
    finally:
        with suppress(OSError):  # else it would hide why the file could not be written
            part.unlink(missing_ok=True)


def delete_abandoned(path: UPath) -> None:
    """Delete the temporary files and folders that killed processes left beside a local file."""
    if not is_remote(path):
        for part in list_paths(path.parent, f".{path.name}.*.part"):
            if is_abandoned(part.name):
                delete_folder(part)


def map_files(function: Callable[[A], B], files: Iterable[A], folder: UPath) -> list[B]:
    """The results of `function`, which reads, for every file of the folder, in order. In threads
    for a remote one: a local file is read sooner than a thread starts."""
    return map_in_threads(function, files) if is_remote(folder) else [*map(function, files)]


def map_in_threads(function: Callable[[A], B], files: Iterable[A]) -> list[B]:
    """The results of `function` for every file, in order; runs in threads."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, files))


def move_file(file: Path, path: UPath) -> None:
    """Move a file of this machine to `path`, replacing what is there: a local one must be on the
    same filesystem, a remote one is sent. Raises StorageError."""
    if is_remote(path):
        with_retries(lambda: path.fs.put_file(str(file), path.path), path)
    else:
        with_retries(lambda: file.replace(str(path)), path)


_SECONDS_TO_REACH = 20.0  # at the start of a command, for an address that may be a mistake


def unwritable(folder: UPath) -> UPath | None:
    """The existing path that prevents a local folder from being created or written; None if there
    is none.

    None for a remote folder, too: an object store refuses only when it is used.
    """
    if is_remote(folder):
        return None
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


@contextmanager
def refuse_unwritable_path(path: UPath, key: str) -> Iterator[None]:
    """Turn a remote store's refusal of a write (no such bucket, no permission) in the `with` block
    into UsageError naming the config key."""
    try:
        yield
    except StorageError as error:
        is_mistake = isinstance(error.__cause__, (FileNotFoundError, PermissionError))
        if is_remote(path) and is_mistake:
            raise UsageError(f"{key}={path}: cannot be written ({refusal_reason(error)})") from None
        raise
