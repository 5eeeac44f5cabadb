"""Garbage collection: delete what compactions replaced, and what killed processes left behind.

A replaced file is retained for a while, for readers that chose their files before. Nothing is
deleted that the newest index does not hold, or that a running process may still commit.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from upath import UPath

from pipeline.asking.journal import committed_journals
from pipeline.core.rows import Call
from pipeline.files.place import (
    AnyPath,
    as_path,
    delete,
    file_size,
    is_remote,
    list_paths,
    modified_at,
    temporary_files,
)
from pipeline.store.shards.loose import list_shard_files
from pipeline.store.shards.shard_files import last_attempts
from pipeline.store.shards.shard_index import Index, commit_next, generations, newest_index
from pipeline.store.upkeep.compaction import LEASE
from pipeline.store.upkeep.lease import lease

RETENTION = 24 * 3600.0  # seconds
_SECONDS_OF_A_WRITE = 3600.0  # a temporary file is older than any write takes


@dataclass(frozen=True)
class Freed:
    """The files that a collection deleted, and their bytes."""

    files: int = 0
    bytes: int = 0


def collect(warehouse: AnyPath, older_than: float = RETENTION) -> Freed | None:
    """Delete files that were replaced `older_than` seconds ago or earlier, and left-over ones; None
    if another process compacts or collects.

    With 0, a command that is reading may miss its files; a run that executes does not. Raises
    StorageError.
    """
    root = as_path(warehouse)
    with lease(root / "compacted", LEASE) as held:
        if held is None:
            return None
        now = time.time()
        files = [*_replaced(root, now - older_than), *_left_over(root, now - older_than)]
        return Freed(len(files), sum(map(delete_counted, files)))


def _replaced(root: UPath, before: float) -> Iterator[UPath]:
    """Shards in tables/, compacted files and indexes that were replaced before that time."""
    folder = root / "compacted"
    _invalidate_killed_compactions(folder, before)
    found = sorted(generations(folder), key=lambda file: Index(file).number)
    old = [file for file in found if _modified(file) <= before]
    if not old:
        return
    held, at_last = Index(old[-1]), newest_index(folder)
    for (table, step_id), names in list_shard_files(root).items():
        replaced = held.names(table, step_id) & at_last.names(table, step_id)
        yield from (root / "tables" / table / step_id / n for n in sorted(replaced & {*names}))
    used = {name for file in found if file not in old[:-1] for name in Index(file).files()}
    for file in list_paths(folder, "*/*.parquet"):
        if f"{file.parent.name}/{file.name}" not in used and _modified(file) <= before:
            yield file
    yield from old[:-1]


def _invalidate_killed_compactions(folder: UPath, before: float) -> None:
    """Commit the index again where there are files that no index names: their compaction was
    killed, or suspended and would now commit an index that names what is deleted here."""
    known = {name for file in generations(folder) for name in Index(file).files()}
    files = [
        f for f in list_paths(folder, "*/*.parquet") if f"{f.parent.name}/{f.name}" not in known
    ]
    if any(_modified(file) <= before for file in files):
        index = newest_index(folder)
        commit_next(folder, index, index.read())


def _left_over(root: UPath, before: float) -> Iterator[UPath]:
    """Temporary files that no living process will finish, and journals of committed units."""
    if not is_remote(root):  # an object store has no temporary files
        before = min(before, time.time() - _SECONDS_OF_A_WRITE)
        yield from (file for file in temporary_files(root) if _modified(file) <= before)
    yield from committed_journals(root, _committed(root))


def _committed(root: UPath) -> dict[str, dict[str, int]]:
    """step_id -> unit -> the highest attempt of its rows, over all runs."""
    found, index = list_shard_files(root), newest_index(root / "compacted")
    units: dict[str, dict[str, int]] = {}
    for table, step_id in {*found, *index.steps()}:
        if table == Call.table:  # committed before the rows
            continue
        loose = last_attempts(found.get((table, step_id), ()))
        own = units.setdefault(step_id, {})
        attempts = [*index.units(table, step_id).items(), *((u, a) for u, (a, _) in loose.items())]
        for unit, attempt in attempts:
            own[unit] = max(attempt, own.get(unit, 0))
    return units


def _modified(file: UPath) -> float:
    """The time the file was written; infinite if it no longer exists."""
    try:
        return modified_at(file)
    except FileNotFoundError:
        return float("inf")


def delete_counted(file: UPath) -> int:
    """Delete a file, which may no longer exist; returns its bytes."""
    try:
        num_bytes = file_size(file)
    except FileNotFoundError:
        return 0
    delete(file)
    return num_bytes
