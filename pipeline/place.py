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
_AT_ONCE = 16  # an object store answers in tens of milliseconds, but many at once


def place(path: AnyPath) -> UPath:
    """The path; one on this machine is a pathlib path as well.

    Raises UsageError where nothing is installed that reads such an address.
    """
    try:
        found = UPath(path)
        # What other machines write must be seen: no listing is kept.
        return UPath(path, use_listings_cache=False) if is_remote(found) else found
    except (ImportError, ValueError) as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from None


def is_remote(path: UPath) -> bool:
    """Whether it is anywhere but in this machine's file system."""
    return not isinstance(path, Path)


def unwritable(folder: UPath) -> UPath | None:
    """What on this machine keeps a folder from being written to or made; null where nothing does,
    and for a store, which tells when it is tried."""
    if is_remote(folder):
        return None
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return None if there.is_dir() and os.access(str(there), os.W_OK) else there


@contextmanager
def reaching(path: UPath, key: str) -> Iterator[None]:
    """UsageError, naming the config key, where the store of `path` refuses within."""
    try:
        yield
    except _refusals() as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{key}={path}: cannot be reached ({why})") from None


def _refusals() -> tuple[type[Exception], ...]:
    """What filesystems raise; those of a store only once it is in use."""
    known = {
        "botocore.exceptions": "BotoCoreError",
        "google.auth.exceptions": "GoogleAuthError",
        "aiohttp": "ClientError",
    }
    there = [(sys.modules[module], name) for module, name in known.items() if module in sys.modules]
    return (OSError, *(getattr(module, name) for module, name in there))


def commit(path: UPath, content: bytes) -> bool:
    """Write a file unless it is there already, whole or not at all. True if it is ours.

    On this machine synced and linked to its name, elsewhere one conditional PUT.
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
    """Write a file so that readers see the old or the new one, whole."""
    if is_remote(path):
        path.fs.pipe_file(path.path, content)
    else:
        with _written_beside(path, content, sync=False) as part:
            part.replace(path)


@contextmanager
def _written_beside(path: UPath, content: bytes, sync: bool) -> Iterator[UPath]:
    """A file with the content in the same folder; nothing is left of it."""
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
    """`function` of every file, in order, many at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, files))
