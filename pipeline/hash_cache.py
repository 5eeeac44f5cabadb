"""A cache of file hashes in the user's cache folder: $XDG_CACHE_HOME/gistmill or ~/.cache/gistmill.

One small JSON file per hashed file. An entry is valid while the file's size, inode, modification
time and status change time are unchanged. No program can set the status change time, so it reveals
even a write that restores the modification time (`rsync --times`).
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import ValidationError

from pipeline.settings import Settings, sha

# The coarsest resolution of a filesystem's times: within it, a second change may not show.
_COARSEST_TIME_NS = 2_000_000_000


class _FileState(Settings):
    size: int  # bytes
    inode: int
    mtime_ns: int
    ctime_ns: int


class _Entry(Settings):
    path: str
    state: _FileState
    hash: str


# By path; the only cache where the cache folder cannot be written.
_entries_of_this_process: dict[str, _Entry] = {}


def cached_hash(file: Path, read_and_hash: Callable[[], str]) -> str:
    """The cached hash of an unchanged file, else the result of `read_and_hash`, which is cached.

    A file that changed within 2 seconds before it was read is not cached. A cache folder that
    cannot be written is no error. Raises OSError where `file` cannot be inspected.
    """
    began_ns = time.time_ns()
    path, state = str(file.absolute()), _state(file)
    entry = _entries_of_this_process.get(path) or _read_entry(path)
    if entry and (entry.path, entry.state) == (path, state):
        return entry.hash
    entry = _Entry(path=path, state=state, hash=read_and_hash())
    if began_ns - state.ctime_ns >= _COARSEST_TIME_NS:
        _entries_of_this_process[path] = entry
        with suppress(OSError):
            _write_entry(entry)
    return entry.hash


def _state(file: Path) -> _FileState:
    """The state of a file; of a link, that of its target."""
    stat = file.stat()
    return _FileState(
        size=stat.st_size, inode=stat.st_ino, mtime_ns=stat.st_mtime_ns, ctime_ns=stat.st_ctime_ns
    )


def _read_entry(path: str) -> _Entry | None:
    file = _entry_file(path)
    try:
        return _Entry.model_validate_json(file.read_bytes()) if file else None
    except (OSError, ValidationError):  # none yet, or written by something else
        return None


def _write_entry(entry: _Entry) -> None:
    """Write a temporary file and rename it: several processes may hash a model at once."""
    file = _entry_file(entry.path)
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=file.parent, suffix=".tmp", delete=False) as temporary:
        temporary.write(entry.model_dump_json())
    Path(temporary.name).replace(file)


def _entry_file(path: str) -> Path | None:
    """The entry's file; null where no cache folder is set and the user has no home folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the XDG specification requires ignoring relative paths
        try:
            folder = Path.home() / ".cache"
        except RuntimeError:
            return None
    return folder / "gistmill" / "file_hashes" / f"{sha(path, 32)}.json"
