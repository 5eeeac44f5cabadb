"""Collection: delete what compactions replaced, and what killed processes left behind.

A replaced file stays for a retention, for those who chose their files before. Nothing is deleted
that the newest index does not hold, or that a process at work may still commit.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from upath import UPath

from pipeline.place import (
    AnyPath,
    delete,
    is_remote,
    listed,
    modified,
    place,
    size,
    temporary_files,
)
from pipeline.rows import Call
from pipeline.store.compaction import LEASE
from pipeline.store.index import Index, commit_next, generations, newest
from pipeline.store.lease import lease
from pipeline.store.loose import listing

RETENTION = 24 * 3600.0  # seconds
_SECONDS_OF_A_WRITE = 3600.0  # a temporary file is older than any write takes


@dataclass(frozen=True)
class Freed:
    """What a collection deleted."""

    files: int = 0
    bytes: int = 0


def collect(warehouse: AnyPath, older_than: float = RETENTION) -> Freed | None:
    """Delete files that were replaced `older_than` seconds ago or earlier, and left-over ones; null
    where another process compacts or collects.

    With 0, a command that only reads and has begun may miss its files; a run at work does not.
    Raises StorageError.
    """
    root = place(warehouse)
    with lease(root / "compacted", LEASE) as held:
        if held is None:
            return None
        now = time.time()
        files = [*_replaced(root, now - older_than), *_left_over(root, now - older_than)]
        return Freed(len(files), sum(map(_delete, files)))


def _replaced(root: UPath, before: float) -> Iterator[UPath]:
    """Shards in tables/, compacted files and indexes that were replaced before that time."""
    folder = root / "compacted"
    _forestall(folder, before)
    found = sorted(generations(folder), key=lambda file: Index(file).number)
    old = [file for file in found if _modified(file) <= before]
    if not old:
        return
    held, at_last = Index(old[-1]), newest(folder)
    for (table, step_id), names in listing(root).items():
        replaced = held.names(table, step_id) & at_last.names(table, step_id)
        yield from (root / "tables" / table / step_id / n for n in sorted(replaced & {*names}))
    used = {name for file in found if file not in old[:-1] for name in Index(file).files()}
    for file in listed(folder, "*/*.parquet"):
        if f"{file.parent.name}/{file.name}" not in used and _modified(file) <= before:
            yield file
    yield from old[:-1]


def _forestall(folder: UPath, before: float) -> None:
    """Commit the index again where there are files that no index names: their compaction was
    killed, or stood still and would now commit an index that names what is deleted here."""
    known = {name for file in generations(folder) for name in Index(file).files()}
    files = [f for f in listed(folder, "*/*.parquet") if f"{f.parent.name}/{f.name}" not in known]
    if any(_modified(file) <= before for file in files):
        index = newest(folder)
        commit_next(folder, index, index.read())


def _left_over(root: UPath, before: float) -> Iterator[UPath]:
    """Temporary files that no living process will finish, and journals of committed units."""
    if not is_remote(root):  # an object store has no temporary files
        before = min(before, time.time() - _SECONDS_OF_A_WRITE)
        yield from (file for file in temporary_files(root) if _modified(file) <= before)
    yield from _journals(root)


def _journals(root: UPath) -> Iterator[UPath]:
    """Journals of committed units, which killed processes have left."""
    found, index = listing(root), newest(root / "compacted")
    done = {(step, name) for (table, step), own in found.items() if table != Call.table
            for name in own}  # fmt: skip
    for table, step in {(row["table_name"], row["step_id"]) for row in _steps(index)}:
        done |= {(step, name) for name in index.names(table, step) if table != Call.table}
    for file in listed(root / "journal", "*/*/*.jsonl"):
        if (file.parent.parent.name, f"{file.parent.name}.parquet") in done:
            yield file


def _steps(index: Index) -> list[dict[str, str]]:
    """The table and step of all entries."""
    columns = ["table_name", "step_id"]
    found: list[dict[str, str]] = index.rows.group_by(columns).aggregate([]).to_pylist()
    return found


def _modified(file: UPath) -> float:
    """When the file was written; never, for one that is gone."""
    try:
        return modified(file)
    except FileNotFoundError:
        return float("inf")


def _delete(file: UPath) -> int:
    """Delete a file; returns its bytes."""
    try:
        num_bytes = size(file)
    except FileNotFoundError:
        return 0
    delete(file)
    return num_bytes
