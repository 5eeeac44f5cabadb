"""Hash a model's file or folder by content, and the user's cache, which holds such hashes.

Every byte is hashed: two fine-tunes share names, sizes and most of their bytes. A model may have
hundreds of gigabytes, so the hashes of large files are cached, by path, size, inode, modification
time and status change time. No program can set the last, so it reveals even a write that restores
the modification time (`rsync --times`).

The cache has small files in $XDG_CACHE_HOME/gistmill or ~/.cache/gistmill, which may be deleted at
any time; those older than 30 days are. If the folder cannot be read or written, nothing is cached.
"""

import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from glob import glob
from pathlib import Path, PurePath
from threading import Timer

from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.files.storage import as_path, ignore_refusals, write

_CHUNK_BYTES = 2**24  # hashed by one thread; several at once keep a fast disk busy
_THREADS = min(16, os.cpu_count() or 1)
_SILENT_SECONDS = 5.0  # a notice is printed when hashing a model takes longer
_DOCUMENTATION_SUFFIXES = {".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg"}
_SECONDS_KEPT = 30 * 24 * 3600.0

# By entry of the cache; the only copy if the cache's folder cannot be written.
_hashes_of_this_process: dict[str, bytes] = {}


def content_hash(path: Path) -> str:
    """16 hex digits of a hash of a model's file, or of all the files in its folder, with their
    relative names. Its own path does not count, nor do hidden files and documentation, as no model
    loader reads them. Links are followed. Raises UsageError naming a file that cannot be read."""
    notice = f"gistmill: hashing all files of {path}, as their content identifies the model\n"
    timer = Timer(_SILENT_SECONDS, sys.stderr.write, [notice])
    timer.start()
    try:
        with ThreadPoolExecutor(_THREADS, "content-hash") as threads:
            if path.is_file():
                return _file_hash(path, threads)[:16]
            # `glob` leaves hidden files out and, unlike Path.rglob, follows links to folders.
            names = glob("**", root_dir=path, recursive=True)  # noqa: PTH207  # see above
            files = sorted(PurePath(n).as_posix() for n in names if _is_of_model(path, PurePath(n)))
            return sha([[name, _file_hash(path / name, threads)] for name in files], 16)
    finally:
        timer.cancel()


def _is_of_model(folder: Path, file: PurePath) -> bool:
    is_documentation = file.suffix.lower() in _DOCUMENTATION_SUFFIXES
    is_licence = file.name.startswith(("LICENSE", "NOTICE"))
    is_compiled = "__pycache__" in file.parts  # changes when code is imported
    return not (is_documentation or is_licence or is_compiled) and (folder / file).is_file()


def _file_hash(file: Path, threads: ThreadPoolExecutor) -> str:
    try:
        stat = file.stat()  # a link's target
        if stat.st_size < _CHUNK_BYTES:
            return _read_and_hash(file, stat.st_size, threads)
        state = (stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        entry = sha([str(file.absolute()), *state], 32)
        if cached := _hashes_of_this_process.get(entry) or cached_content("file_hashes", entry):
            return cached.decode()
        computed = _read_and_hash(file, stat.st_size, threads)
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}; make it readable, as its content identifies the model"
        ) from None
    _hashes_of_this_process[entry] = computed.encode()
    cache_content("file_hashes", entry, computed.encode())
    return computed


def _read_and_hash(file: Path, size: int, threads: ThreadPoolExecutor) -> str:
    """The sha256 of the sha256 of every chunk: one thread alone is slower than a fast disk."""

    def chunk_hash(start: int) -> bytes:
        with file.open("rb") as opened:
            opened.seek(start)
            return hashlib.sha256(opened.read(_CHUNK_BYTES)).digest()

    chunks = threads.map(chunk_hash, range(0, size, _CHUNK_BYTES))
    return hashlib.sha256(b"".join(chunks)).hexdigest()


def cached_content(kind: str, entry: str) -> bytes | None:
    with suppress(OSError, RuntimeError):
        return (_cache_folder(kind) / entry).read_bytes()
    return None


def cache_content(kind: str, entry: str, content: bytes) -> None:
    """Write an entry of the cache, whole or not at all. No other user may read the folder."""
    with ignore_refusals(), suppress(OSError, RuntimeError, UsageError):
        folder = _cache_folder(kind)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(as_path(folder / entry), content)
        _delete_old(folder)


@cache  # once per process
def _delete_old(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_file() and file.stat().st_mtime < time.time() - _SECONDS_KEPT:
            file.unlink(missing_ok=True)


def _cache_folder(kind: str) -> Path:
    """Raises RuntimeError if neither the variable nor a home folder is set."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the XDG specification requires ignoring relative paths
        folder = Path.home() / ".cache"
    return folder / "gistmill" / kind
