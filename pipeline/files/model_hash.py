"""Hash a model's file or folder by content, and read large files again only after they changed.

Every byte is hashed: two fine-tunes, or a model with a single edited tensor, share names, sizes and
most of their bytes. A model may have hundreds of gigabytes and every command needs its hash several
times, so the hashes of large files are cached (user_cache.py): one small file per hashed file,
named after its path, size, inode, modification time and status change time. No program can set the
status change time, so it reveals even a write that restores the modification time (`rsync
--times`).
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path, PurePath
from threading import Timer

from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.files.user_cache import keep, kept

_CHUNK_BYTES = 2**24  # hashed by one thread; several at once keep a fast disk busy
_THREADS = min(16, os.cpu_count() or 1)
_SILENT_SECONDS = 5.0  # a notice is printed when hashing a model takes longer
_DOCUMENTATION_SUFFIXES = {".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg"}
_DOCUMENTATION_NAMES = ("LICENSE", "NOTICE")
# The coarsest time resolution of filesystems: a second change within it may not show.
_COARSEST_TIME_NS = 2_000_000_000

# By entry of the cache; the only copy if the cache's folder cannot be written.
_hashes_of_this_process: dict[str, bytes] = {}


def content_hash(path: Path) -> str:
    """16 hex digits of a hash of a model's file, or of all the files in its folder.

    The path does not count, so a model that was moved or copied keeps its hash. In a folder the
    files' relative names count; hidden files and documentation do not, as no model loader reads
    them. Links are followed. Raises UsageError naming a file that cannot be read.
    """
    notice = f"gistmill: hashing all files of {path}, as their content identifies the model\n"
    timer = Timer(_SILENT_SECONDS, sys.stderr.write, [notice])
    timer.start()
    try:
        with ThreadPoolExecutor(_THREADS, "content-hash") as threads:
            if path.is_file():
                return _file_hash(path, threads)[:16]
            names = sorted(_model_files(path))
            return sha([[name, _file_hash(path / name, threads)] for name in names], 16)
    finally:
        timer.cancel()


def _model_files(folder: Path) -> Iterator[str]:
    """Relative names, with forward slashes."""
    # `glob` leaves hidden files out and, unlike Path.rglob, follows links to folders.
    for name in glob("**", root_dir=folder, recursive=True):  # noqa: PTH207  # see above
        file = PurePath(name)
        is_documentation = file.suffix.lower() in _DOCUMENTATION_SUFFIXES or file.name.startswith(
            _DOCUMENTATION_NAMES
        )
        is_compiled = "__pycache__" in file.parts  # changes when code is imported
        if not is_documentation and not is_compiled and (folder / name).is_file():
            yield file.as_posix()


def _file_hash(file: Path, threads: ThreadPoolExecutor) -> str:
    """The hash of a file. Cached for a large file, unless it changed less than 2 s before."""
    try:
        began_ns, stat = time.time_ns(), file.stat()  # a link's target
        if stat.st_size < _CHUNK_BYTES:
            return _read_and_hash(file, stat.st_size, threads)
        state = (stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        entry = sha([str(file.absolute()), *state], 32)
        if cached := _hashes_of_this_process.get(entry) or kept("file_hashes", entry):
            return cached.decode()
        computed = _read_and_hash(file, stat.st_size, threads)
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}; make it readable, as its content identifies the model"
        ) from None
    if began_ns - stat.st_ctime_ns >= _COARSEST_TIME_NS:
        _hashes_of_this_process[entry] = computed.encode()
        keep("file_hashes", entry, computed.encode())
    return computed


def _read_and_hash(file: Path, size: int, threads: ThreadPoolExecutor) -> str:
    """The sha256 of the sha256 of every chunk: one thread alone is slower than a fast disk."""

    def chunk_hash(start: int) -> bytes:
        with file.open("rb") as opened:
            opened.seek(start)
            return hashlib.sha256(opened.read(_CHUNK_BYTES)).digest()

    chunks = threads.map(chunk_hash, range(0, size, _CHUNK_BYTES))
    return hashlib.sha256(b"".join(chunks)).hexdigest()
