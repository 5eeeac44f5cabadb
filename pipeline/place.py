"""Files and folders, on this machine or behind any fsspec filesystem (s3://, gs://, hf:// ...)."""

import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from upath import UPath

from pipeline.errors import UsageError

A = TypeVar("A")
B = TypeVar("B")
AnyPath = str | Path | UPath
_AT_ONCE = 16  # threads: an object store has a latency of tens of milliseconds


def place(path: AnyPath) -> UPath:
    """The path as a UPath; a local one is a pathlib.Path as well.

    Raises UsageError where no filesystem for such an address is installed.
    """
    try:
        found = UPath(path)
        # Listings are not cached, so that files written by other machines are seen.
        return UPath(path, use_listings_cache=False) if is_remote(found) else found
    except (ImportError, ValueError) as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from None


def is_remote(path: UPath) -> bool:
    """Whether the path is not in this machine's file system."""
    return not isinstance(path, Path)


def unwritable(folder: UPath) -> UPath | None:
    """The existing path that prevents a local folder from being created or written; null if none.

    Null for a remote folder, too: an object store refuses only when it is used.
    """
    if is_remote(folder):
        return None
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return None if existing.is_dir() and os.access(str(existing), os.W_OK) else existing


@contextmanager
def advisory() -> Iterator[None]:
    """Leave out what a filesystem refuses in the `with` block: for files that only say how far a
    run is, and are soon written or read again."""
    try:
        yield
    except refusals():
        pass


@contextmanager
def reaching(path: UPath, key: str) -> Iterator[None]:
    """Turn a filesystem's errors in the `with` block into UsageError naming the config key."""
    try:
        yield
    except refusals() as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{key}={path}: cannot be reached ({why})") from None


def refusals() -> tuple[type[Exception], ...]:
    """The errors of filesystems; those of an object store's library once it is imported."""
    known = {
        "botocore.exceptions": "BotoCoreError",
        "google.auth.exceptions": "GoogleAuthError",
        "aiohttp": "ClientError",
    }
    used = [(sys.modules[module], name) for module, name in known.items() if module in sys.modules]
    return (OSError, *(getattr(module, name) for module, name in used))


def commit(path: UPath, content: bytes) -> bool:
    """Create a file atomically unless it exists. True if this call created it.

    Locally a synced temporary file is linked to the name; remotely one conditional PUT.
    """
    if is_remote(path):
        try:
            path.fs.pipe_file(path.path, content, mode="create")
        except FileExistsError:
            return False
        return True
    with _written_beside(path, content, sync=True) as part:
        try:
            os.link(str(part), str(path))
        except FileExistsError:
            return False
    return True


def write(path: UPath, content: bytes) -> None:
    """Write or replace a file atomically: readers see the old or the new content."""
    if is_remote(path):
        path.fs.pipe_file(path.path, content)
    else:
        with _written_beside(path, content, sync=False) as part:
            part.replace(path)


@contextmanager
def _written_beside(path: UPath, content: bytes, sync: bool) -> Iterator[UPath]:
    """A temporary file with the content in the same folder, deleted afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)


def each(function: Callable[[A], B], files: Iterable[A]) -> list[B]:
    """`function` of every file, in order; runs in threads."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, files))
