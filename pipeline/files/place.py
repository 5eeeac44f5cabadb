"""Files and folders, on this machine or behind any fsspec filesystem (s3://, gs://, hf:// ...).

File operations on a warehouse go through this module or `with_retries` (storage_retries.py), so
that all are retried, but for the local appends of a journal, which is advisory, and the marker of a
submitted job. They block: on an event loop, call them in a thread. A mistake in a path that a user
names is a UsageError with the key in the command's words.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar
from unicodedata import normalize

from upath import UPath

from pipeline.core.errors import StorageError, UsageError
from pipeline.files.processes import is_abandoned, part_name
from pipeline.files.storage_retries import (
    ABSENT,
    limit_retries,
    refusal_reason,
    storage_errors,
    with_retries,
)

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
