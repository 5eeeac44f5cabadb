"""Paths that a user names: a mistake in one is a UsageError with the key in the command's words."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from upath import UPath

from pipeline.core.errors import StorageError, UsageError
from pipeline.files.place import is_remote
from pipeline.files.storage_retries import limit_retries, refusal_reason, storage_errors

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
