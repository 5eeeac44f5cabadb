"""The store's boundary in this process: every operation that changes files is a crash point.

Before and after each file operation and each request that changes an object; a write has one more,
in its middle. At the chosen one the process is gone at once: no clean-up, no flush.
"""

import builtins
import functools
import io
import os
import threading
from collections.abc import Callable
from typing import Any

CRASHED = 77  # exit code of a process that met its crash point
_FILE_OPERATIONS = (
    "link", "symlink", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "fsync",
    "fdatasync", "truncate", "ftruncate", "write",
)  # fmt: skip
_OBJECT_REQUESTS = {
    "put_object", "copy_object", "delete_object", "delete_objects", "create_multipart_upload",
    "upload_part", "complete_multipart_upload",
}  # fmt: skip


class Boundary:
    """Counts the points that this process passes below `folder`, and ends it at `crash_at`."""

    def __init__(self, folder: str, crash_at: int | None = None) -> None:
        self.num_points = 0
        self._folder, self._crash_at = folder, crash_at
        self._lock = threading.Lock()

    def install(self) -> None:
        """Wrap the operations, for the rest of this process."""
        for name in _FILE_OPERATIONS:
            setattr(os, name, self._wrapped(getattr(os, name)))
        for module in (io, builtins):
            setattr(module, "open", self._opening(io.open))  # noqa: B010  # mypy refuses the other
        self._wrap_objects()

    def point(self) -> None:
        with self._lock:  # held at the end, so that no other thread does anything more
            self.num_points += 1
            if self.num_points == self._crash_at:
                os._exit(CRASHED)

    def _wrapped(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(operation)
        def between(*given: Any, **named: Any) -> Any:
            if not self._is_ours(given):
                return operation(*given, **named)
            self.point()
            try:
                return operation(*given, **named)
            finally:
                self.point()

        return between

    def _is_ours(self, given: tuple[Any, ...]) -> bool:
        """File descriptors are ours: only a store syncs or truncates by them."""
        return isinstance(given[0], int) or any(
            self._folder in os.fspath(path) for path in given if isinstance(path, str | os.PathLike)
        )

    def _opening(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(opened)
        def open_file(path: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
            changes = set(mode) & set("wxa+") and not isinstance(path, int)
            if not changes or not self._is_ours((path,)):
                return opened(path, mode, *given, **named)
            self.point()
            file = opened(path, mode, *given, **named)
            file.write = self._tearing(file.write, file.flush)
            return file

        return open_file

    def _tearing(self, write: Callable[..., Any], flush: Callable[..., Any]) -> Callable[..., Any]:
        """A write with a point in its middle, when half of it is in the file."""

        def torn(content: Any) -> int:
            self.point()
            half = len(content) // 2
            write(content[:half])
            flush()
            self.point()
            write(content[half:])
            self.point()
            return len(content)

        return torn

    def _wrap_objects(self) -> None:
        import s3fs

        request = s3fs.S3FileSystem._call_s3

        async def between(store: Any, method: str, *given: Any, **named: Any) -> Any:
            if method not in _OBJECT_REQUESTS:
                return await request(store, method, *given, **named)
            self.point()
            try:
                return await request(store, method, *given, **named)
            finally:
                self.point()

        s3fs.S3FileSystem._call_s3 = between
