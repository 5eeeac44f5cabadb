"""Small files in the user's cache folder, $XDG_CACHE_HOME/gistmill or ~/.cache/gistmill, which may
be deleted at any time. Entries not used for 30 days are deleted. If the folder cannot be read or
written, nothing is kept, which is no error."""

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path, ignore_refusals, write

_SECONDS_UNUSED = 30 * 24 * 3600.0


def kept(kind: str, entry: str) -> bytes | None:
    """The content of an entry, and mark it as used; None if there is none. `kind`: the
    sub-folder."""
    with suppress(OSError, RuntimeError):
        file = _folder(kind) / entry
        content = file.read_bytes()
        with suppress(OSError):
            os.utime(file)
        return content
    return None


def keep(kind: str, entry: str, content: bytes) -> None:
    """Write an entry, whole or not at all. No other user may read the folder."""
    with ignore_refusals(), suppress(OSError, RuntimeError, UsageError):
        folder = _folder(kind)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(as_path(folder / entry), content)
        _delete_unused(folder)


@cache  # once per process
def _delete_unused(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_file() and file.stat().st_mtime < time.time() - _SECONDS_UNUSED:
            file.unlink(missing_ok=True)


def _folder(kind: str) -> Path:
    """Raises RuntimeError if neither the variable nor a home folder is set."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the XDG specification requires ignoring relative paths
        folder = Path.home() / ".cache"
    return folder / "gistmill" / kind
