"""Folders that a process writes in only while they are the ones it began with: neither moved away
nor made again. What tells them is a file in them."""

import os
from contextlib import suppress
from errno import ENOENT
from pathlib import Path

from upath import UPath

from pipeline.files.storage_retries import ABSENT, with_retries

_marked: dict[UPath, tuple[str, bytes]] = {}  # folder -> the name and content of a file in it


def write_only_while(folder: UPath, name: str) -> None:
    """From now on write below a folder only while its file `name` is as it is now: not in a folder
    made again where it was moved away, nor in another one. Raises StorageError."""
    file = folder / name
    with suppress(*ABSENT):
        _marked[folder] = (name, with_retries(file.read_bytes, file, ABSENT))


def write_always(folder: UPath) -> None:
    """Take `write_only_while` back."""
    _marked.pop(folder, None)


def prepare_folder(path: UPath) -> None:
    """Make a local folder to write in, once, and those above it. Raises OSError."""
    refuse_another(path)
    if path in _marked:  # it is there; made again, it would be another
        return
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:  # each above is checked for itself: the marked one may go meanwhile
        prepare_folder(path.parent)
        path.mkdir(exist_ok=True)


def refuse_another(path: UPath) -> None:
    """Raise FileNotFoundError if the path is in a folder that is no longer the marked one."""
    for folder, (name, content) in _marked.items():
        if path.is_relative_to(folder) and not _holds(folder / name, content):
            raise FileNotFoundError(ENOENT, "moved away, or replaced by another", str(folder))


def _holds(path: UPath, content: bytes) -> bool:
    """True if a small file has this content. Asked before each write: a local one is read without
    Python's buffers, which would take twice as many system calls."""
    with suppress(*ABSENT):
        if not isinstance(path, Path):
            return path.read_bytes() == content
        opened = os.open(str(path), os.O_RDONLY)
        try:
            return os.read(opened, len(content) + 1) == content
        finally:
            os.close(opened)
    return False
