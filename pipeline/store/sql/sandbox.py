"""Restrict the SQL of a connection to reading the warehouse's files.

DuckDB's own locks refuse other files, settings and extensions, and it reads through a filesystem
that cannot write. A statement can change only tables in memory, until the connection ends. Works
with DuckDB 1.5 and 2.0.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from datetime import datetime
from errno import EROFS
from functools import lru_cache, partial
from typing import Any

from fsspec import AbstractFileSystem
from upath import UPath

from pipeline.core.sql_files import text
from pipeline.files.storage import (
    as_path,
    exists,
    file_size,
    is_remote,
    modified_at,
    read,
    with_retries,
)

_PROTOCOL = "read"
PREFIX = f"{_PROTOCOL}://"  # of the names by which DuckDB opens files


def lock(connection: Any, files: Iterable[UPath]) -> None:
    """Let a connection read `files` and nothing else, for good: no file is written, nothing is
    attached or installed, no setting changed, no variable of this process scanned."""
    connection.execute(f"set allowed_paths = {addresses(files)}")
    connection.execute("set temp_directory = ''")
    connection.execute("set disabled_filesystems = 'LocalFileSystem'")
    connection.execute("set enable_external_access = false")
    connection.execute("set python_enable_replacements = false")
    connection.execute("set lock_configuration = true")


def addresses(files: Iterable[UPath]) -> str:
    """The names by which DuckDB opens these files, as a list in SQL."""
    return "[" + ", ".join(text(f"{PREFIX}{file}") for file in files) + "]"


class ReadOnlyFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Opens the files of `addresses` to read them. Raises what their own filesystem raises."""

    protocol = _PROTOCOL

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix(PREFIX)

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """A file to read. Raises OSError for every mode but `rb`."""
        if mode != "rb":
            raise OSError(EROFS, os.strerror(EROFS), path)
        file = _file(path)
        if is_remote(file):
            modified = modified_at(file)
            return _OpenFile(lambda size, start: _content(path, modified)[start : start + size])
        descriptor = with_retries(
            partial(os.open, str(file), os.O_RDONLY), file, (FileNotFoundError,)
        )
        opened = _OpenFile(partial(os.pread, descriptor))
        opened.close = weakref.finalize(opened, os.close, descriptor)  # DuckDB may not close it
        return opened

    def glob(self, path: str, **_: Any) -> list[str]:
        """The path itself: it may hold characters that are a pattern elsewhere."""
        return [path]

    def size(self, path: str) -> int:
        return file_size(_file(path))

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(modified_at(_file(path)))

    def exists(self, path: str, **_: Any) -> bool:
        return exists(_file(path))


@lru_cache(maxsize=64)  # DuckDB asks for a file's size and age as it opens it
def _file(path: str) -> UPath:
    return as_path(path.removeprefix(PREFIX))


@lru_cache(maxsize=4)
def _content(path: str, modified: float) -> bytes:
    """The content of a remote file: a plan or an index, of which every part is read."""
    return read(_file(path))


class _OpenFile:
    """A file with a position for each thread, as DuckDB seeks and reads in several at once.
    `read_at(size, position)` reads from the file."""

    def __init__(self, read_at: Callable[[int, int], bytes]) -> None:
        self._read_at = read_at
        self.close: Callable[[], object] = lambda: None
        self._of_thread = threading.local()

    def seek(self, position: int, whence: int = os.SEEK_SET) -> None:
        self._of_thread.position = position

    def tell(self) -> int:
        return getattr(self._of_thread, "position", 0)

    def read(self, size: int) -> bytes:
        content = self._read_at(size, self.tell())
        self._of_thread.position = self.tell() + len(content)
        return content
