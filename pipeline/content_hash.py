"""Hash a model's file or folder by content, and read large files again only after they changed.

Every byte is hashed: two fine-tunes, or a model with a single edited tensor, share names, sizes and
most of their bytes. A model may have hundreds of gigabytes and every command needs its hash several
times, so the hashes of large files are cached (pipeline/hash_cache.py).
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from glob import glob
from pathlib import Path, PurePath
from threading import Timer

from pipeline.errors import UsageError
from pipeline.hash_cache import cached_hash
from pipeline.settings import sha

_CHUNK_BYTES = 2**24  # hashed by one thread; several at once keep a fast disk busy
_THREADS = min(16, os.cpu_count() or 1)
_CACHED_FROM_BYTES = 2**24  # smaller files, such as configs and tokenizers, are read every time
_SILENT_SECONDS = 5.0  # a notice is printed when hashing a model takes longer
_DOCUMENTATION_SUFFIXES = {".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg"}
_DOCUMENTATION_NAMES = ("LICENSE", "NOTICE")


def content_hash(path: Path) -> str:
    """16 hex digits of the content of a model's file, or of all the files in its folder.

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
        is_compiled = "__pycache__" in file.parts  # Python's own, remade whenever code is imported
        if not is_documentation and not is_compiled and (folder / name).is_file():
            yield file.as_posix()


def _file_hash(file: Path, threads: ThreadPoolExecutor) -> str:
    try:
        size = file.stat().st_size
        read = partial(_read_and_hash, file, size, threads)
        return cached_hash(file, read) if size >= _CACHED_FROM_BYTES else read()
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}; make it readable, as its content identifies the model"
        ) from None


def _read_and_hash(file: Path, size: int, threads: ThreadPoolExecutor) -> str:
    """The sha256 of the sha256 of every chunk: one thread alone is slower than a fast disk."""
    chunks = threads.map(partial(_chunk_hash, file), range(0, size, _CHUNK_BYTES))
    return hashlib.sha256(b"".join(chunks)).hexdigest()


def _chunk_hash(file: Path, start: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(start)
        return hashlib.sha256(opened.read(_CHUNK_BYTES)).digest()
