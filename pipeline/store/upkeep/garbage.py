"""Removal of runs, and garbage collection, the only deletion of tables' files: what compactions
replaced, what removed runs alone had planned, and what killed processes left behind.

`remove_run` deletes a run's folder and leaves its planned units as a record,
<warehouse>/removed/<run>.<hex>.parquet. Until a collection the rows of its units are in the views
`all_...`, with no run, and a run that plans some of them again has them without a call.

`collect` deletes what was replaced, or removed, 24 hours ago or earlier, so that a reader keeps its
files for that long. The clock is this machine's, against the time that storage gave the index that
replaced a file, or the record. With `older_than=0` open queries lose their files: they fail, naming
a missing file, and a new query succeeds.

Planned units of removed runs stay while any run is executed, as it may plan them again, and while
the plan of any run cannot be read. No run needs files that a compaction replaced.
"""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from upath import UPath

from pipeline.asking.replies import journal_files
from pipeline.core.calls import Call
from pipeline.files.lease import UPKEEP, Lease, is_a_run_at_work, lease
from pipeline.files.storage import (
    AnyPath,
    as_path,
    delete,
    delete_folder,
    delete_if_empty,
    file_size,
    is_abandoned,
    is_remote,
    list_paths,
    modified_at,
    path_kind,
    read,
    write,
)
from pipeline.store.runs.planned_units import planned_files, units_in
from pipeline.store.runs.run_folder import num_labels
from pipeline.store.shards.shard_index import Index, generations, newest_index
from pipeline.store.shards.shards import ShardFiles, highest_attempts, list_shard_files
from pipeline.store.upkeep.compaction import rewrite

RETENTION = 24 * 3600.0  # seconds
_SECONDS_OF_A_WRITE = 3600.0  # a temporary file is older than any write takes
_CHECKED, _READERS = "checked.json", "readers"  # of version 0.2


@dataclass(frozen=True)
class Removed:
    """The numbers of a removed run's units, of those that stay, as other runs use them, and of
    labels that people gave to its answers."""

    units: int = 0
    kept_units: int = 0
    labels: int = 0


@dataclass(frozen=True)
class Freed:
    """The files that a collection deleted, and their bytes. `is_waiting`: files of removed runs
    stay, as a run that is executed may plan them."""

    files: int = 0
    bytes: int = 0
    is_waiting: bool = False


def run_names(root: UPath) -> list[str]:
    folders = {file.parent.name for file in list_paths(root / "runs", "*/*")}
    return sorted(name for name in folders if not name.startswith("."))


def removal_records(root: UPath) -> list[UPath]:
    """The planned units of removed runs, until what a run alone had used is deleted."""
    return list_paths(root / "removed", "*.parquet")


def _plans(root: UPath) -> list[UPath]:
    """The planned units of every run, and the plans of launches of 0.2 that were killed."""
    return [*planned_files(root), *list_paths(root / "runs", "*/plan/*.parquet")]


def remove_run(root: UPath, name: str) -> Removed:
    """Delete a run's folder, and leave a record of its units. The caller holds the run's lease.
    Raises DamagedError if planned units cannot be read."""
    folder = root / "runs" / name
    removed = Removed(labels=num_labels(folder))
    of_run = [file for file in _plans(root) if folder in file.parents]
    if of_run:
        units = units_in(of_run)
        used = units_in(file for file in _plans(root) if folder not in file.parents)
        removed = Removed(len(units), len(units & used), removed.labels)
        for file in of_run:
            write(root / "removed" / f"{name}.{uuid.uuid4().hex}.parquet", read(file))
        delete(folder / "units.parquet")  # from here on no command sees the run
    delete_folder(folder)
    return removed


def collect(warehouse: AnyPath, older_than: float = RETENTION) -> Freed | None:
    """Delete files that were replaced, or whose run was removed, `older_than` seconds ago or
    earlier, and left-over ones; None if another process compacts or collects. Raises DamagedError
    if a run's planned units cannot be read, and StorageError."""
    root = as_path(warehouse)
    with lease(root, UPKEEP) as upkeep_lease:
        if upkeep_lease is None:
            return None
        records = [f for f in removal_records(root) if _modified(f) <= time.time() - older_than]
        is_waiting = bool(records) and is_a_run_at_work(root)
        sizes = _delete_removed(root, upkeep_lease, records) if records and not is_waiting else []
        if sizes is None:
            return None
        before = time.time() - older_than  # what has just been written again is replaced by now
        shards = list_shard_files(root)
        files = [*_replaced(root, shards, before), *_left_over(root, shards, before)]
        sizes += map(_delete_counted, files)
        delete_if_empty(root / _READERS)
        return Freed(len(sizes), sum(sizes), is_waiting)


def _delete_removed(root: UPath, upkeep_lease: Lease, records: list[UPath]) -> list[int] | None:
    """Delete what these removed runs alone had planned: shards of every attempt, journals of calls
    that a killed process left uncommitted, then the records. Returns the files' sizes, or None if
    another process has taken the lease over. A run that begins now waits."""
    used = units_in({*removal_records(root), *_plans(root)} - {*records})
    gone = units_in(records) - used
    files = [
        root / "tables" / table / step_id / name
        for (table, step_id), names in list_shard_files(root).items()
        for name in names
        if (step_id, name.partition(".")[0]) in gone
    ]
    files += [file for file, step_id, unit, _ in journal_files(root) if (step_id, unit) in gone]
    sizes = [*map(_delete_counted, files)]
    if rewrite(root, upkeep_lease, gone=gone) is None:
        return None
    for step_id in sorted({step_id for step_id, _ in gone} - {step_id for step_id, _ in used}):
        delete(root / "steps" / f"{step_id}.json")
        delete_folder(root / "shared" / step_id)
        delete_folder(root / "journal" / step_id)
        for folder in list_paths(root / "tables", f"*/{step_id}"):
            delete_if_empty(folder)
    for record in records:
        delete(record)
    return sizes


def _replaced(root: UPath, shards: ShardFiles, before: float) -> Iterator[UPath]:
    """Shards in tables/, compacted files and indexes that were replaced by an index written before
    that time. Compacted files that no index names come from a killed compaction."""
    indexes = generations(root / "compacted")
    old = [file for file in indexes if _modified(file) <= before]
    was, now = (Index(files[-1] if files else None) for files in (old, indexes))
    for (table, step_id), names in shards.items():
        compacted = was.names(table, step_id) & now.names(table, step_id)
        yield from (root / "tables" / table / step_id / name for name in names if name in compacted)
    used = {*was.files(), *now.files()}
    # A file that was written after the old index may be in one between the two.
    written_before = _modified(old[-1]) if old else 0.0
    for file in list_paths(root / "compacted", "*/*.parquet"):
        if f"{file.parent.name}/{file.name}" not in used and _modified(file) <= written_before:
            yield file
    yield from old[:-1]


def _left_over(root: UPath, shards: ShardFiles, before: float) -> Iterator[UPath]:
    """Temporary files that no process will finish, journals of committed units, and what version
    0.2 kept of its checks and readers."""
    yield from [*list_paths(root, _CHECKED), *list_paths(root / _READERS, "*.lease")]
    if not is_remote(root):  # an object store has no temporary files
        before = min(before, time.time() - _SECONDS_OF_A_WRITE)
        files = [file for file in list_paths(root, "**/.*.part") if path_kind(file) == "file"]
        yield from (file for file in files if is_abandoned(file.name) or _modified(file) <= before)
    index = newest_index(root / "compacted")
    attempts = {  # step_id -> unit -> the highest attempt of its rows, over all runs
        step_id: highest_attempts(shards.get((table, step_id), ()), index, table, step_id)
        for table, step_id in {*shards, *index.steps}
        if table != Call.table  # committed before the rows
    }
    for file, step_id, unit, attempt in journal_files(root):
        if attempts.get(step_id, {}).get(unit, 0) >= attempt:
            yield file


def _modified(file: UPath) -> float:
    """The time the file was written; infinite if it no longer exists."""
    try:
        return modified_at(file)
    except FileNotFoundError:
        return float("inf")


def _delete_counted(file: UPath) -> int:
    """Returns the file's bytes, 0 if it no longer exists."""
    try:
        num_bytes = file_size(file)
    except FileNotFoundError:
        return 0
    delete(file)
    return num_bytes
