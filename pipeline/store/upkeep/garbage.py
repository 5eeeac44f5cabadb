"""Removal of runs, and garbage collection, the only deletion of tables' files: what compactions
replaced, what removed runs alone had planned, and what killed processes left behind.

`remove_run` deletes a run's folder and leaves its planned units in a record,
<warehouse>/removed/<run>.<hex>.parquet (of one that was killed while it planned, also the files of
its plan). `collect` deletes a file once it has been replaced for the retention, or its run removed:
counted by the storage's clock, from when the index was written that replaced it, or the record. So
a reader has its files for that long. A run that is started meanwhile and plans some of the units
has them again. Nothing is deleted that a run plans or a running process may still commit.
"""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from upath import UPath

from pipeline.asking.known_replies import committed_journals, journal_files
from pipeline.core.calls import Call
from pipeline.files.lease import UPKEEP, is_a_run_at_work, lease
from pipeline.files.processes import is_abandoned
from pipeline.files.storage import (
    AnyPath,
    as_path,
    delete,
    delete_folder,
    delete_if_empty,
    file_size,
    is_remote,
    list_paths,
    modified_at,
    path_kind,
    read,
    write,
)
from pipeline.store.runs.people import num_labels
from pipeline.store.runs.planned_units import (
    UnitKey,
    planned_files,
    units_in,
)
from pipeline.store.shards.shard_index import (
    Index,
    commit_next,
    generation_number,
    generations,
    newest_index,
)
from pipeline.store.shards.shards import (
    ShardFiles,
    highest_attempts,
    list_shard_files,
    loose_shards,
)
from pipeline.store.upkeep.compaction import rewrite

_CHECKED, _READERS = "checked.json", "readers"  # of version 0.2
RETENTION = 24 * 3600.0  # seconds
_SECONDS_OF_A_WRITE = 3600.0  # a temporary file is older than any write takes


@dataclass(frozen=True)
class Removed:
    """The units of a removed run, how many of them stay, as other runs use them, and the labels
    that people gave to its answers."""

    units: int = 0
    kept_units: int = 0
    labels: int = 0


def run_names(root: UPath) -> list[str]:
    """The runs that can be removed."""
    folders = {file.parent.name for file in list_paths(root / "runs", "*/*")}
    return sorted(name for name in folders if not name.startswith("."))


def removal_records(root: UPath) -> list[UPath]:
    """The planned units of every run that was removed, until what it alone had used is deleted."""
    return list_paths(root / "removed", "*.parquet")


def remove_run(root: UPath, name: str) -> Removed:
    """Delete a run's folder, and leave a record of its units. Hold its lease.

    Raises DamagedError if planned units cannot be read.
    """
    folder = root / "runs" / name
    removed = Removed(labels=num_labels(folder))
    plans = _plans(root)
    if planned := [file for file in plans if folder in file.parents]:
        own, others = units_in(planned), units_in(file for file in plans if file not in planned)
        removed = Removed(len(own), len(own & others), removed.labels)
        for file in planned:
            write(root / "removed" / f"{name}.{uuid.uuid4().hex}.parquet", read(file))
        delete(folder / "units.parquet")  # from here on no command sees the run
    delete_folder(folder)
    return removed


@dataclass(frozen=True)
class Freed:
    """The files that a collection deleted, and their bytes. `is_waiting`: those of removed runs
    stay, as a run is at work that may plan them."""

    files: int = 0
    bytes: int = 0
    is_waiting: bool = False


def collect(warehouse: AnyPath, older_than: float = RETENTION) -> Freed | None:
    """Delete files that were replaced, or whose run was removed, `older_than` seconds ago or
    earlier, and left-over ones; None if another process compacts or collects.

    Raises DamagedError if a run's planned units cannot be read, and StorageError.
    """
    root = as_path(warehouse)
    with lease(root, UPKEEP) as held:
        if held is None:
            return None
        records = [f for f in removal_records(root) if _modified(f) <= time.time() - older_than]
        is_waiting = bool(records) and is_a_run_at_work(root)
        sizes = _delete_removed(root, records) if records and not is_waiting else []
        if sizes is None:
            return None
        before = time.time() - older_than  # what has just been written again is replaced by now
        found = list_shard_files(root)
        files = [*_replaced(root, found, before), *_left_over(root, found, before)]
        sizes += map(_delete_counted, files)
        delete_if_empty(root / _READERS)
        return Freed(len(sizes), sum(sizes), is_waiting)


def _delete_removed(root: UPath, records: list[UPath]) -> list[int] | None:
    """Delete what these removed runs alone had planned, then their records; the sizes of the files,
    or None if another process has compacted meanwhile. A run that begins now waits."""
    others = units_in({*removal_records(root), *_plans(root)} - {*records})
    gone = units_in(records) - others
    sizes = [*map(_delete_counted, _files_of(root, gone))]
    if rewrite(root, gone=gone) is None:
        return None
    for step_id in sorted({step_id for step_id, _ in gone} - {step_id for step_id, _ in others}):
        _delete_step(root, step_id)
    for record in records:
        delete(record)
    return sizes


def _plans(root: UPath) -> list[UPath]:
    """The planned units of every run, and the plans of launches of 0.2 that were killed."""
    return [*planned_files(root), *list_paths(root / "runs", "*/plan/*.parquet")]


def _files_of(root: UPath, gone: set[UnitKey]) -> list[UPath]:
    """The files of these units in tables/, of every attempt, and in journal/, of calls that a
    killed process has left uncommitted."""
    shards = loose_shards(root, list_shard_files(root)).values()
    unit_of = {file: (file.parent.name, _unit(file)) for files in shards for file in files}
    return [
        *sorted(file for file, unit in unit_of.items() if unit in gone),
        *(one.file for one in journal_files(root) if (one.step_id, one.unit) in gone),
    ]


def _unit(shard: UPath) -> str:
    return str(shard.name.partition(".")[0])


def _delete_step(root: UPath, step_id: str) -> None:
    """Delete a step's description, its shared replies, and the folders that it leaves empty."""
    delete(root / "steps" / f"{step_id}.json")
    for folder in (root / "shared" / step_id, root / "journal" / step_id):
        if path_kind(folder) == "directory":
            delete_folder(folder)
    if is_remote(root):  # an object store has no folders
        return
    for folder in list_paths(root / "tables", f"*/{step_id}"):
        if not list_paths(folder):
            delete_folder(folder)


def _replaced(root: UPath, found: ShardFiles, before: float) -> Iterator[UPath]:
    """Shards in tables/, compacted files and indexes that were replaced before that time: by an
    index that was written before it."""
    folder = root / "compacted"
    _invalidate_killed_compactions(folder, before)
    indexes = sorted(generations(folder), key=generation_number)
    old = [file for file in indexes if _modified(file) <= before]
    if not old:
        return
    shards = {key: set(names) for key, names in found.items()}
    used: set[str] = set()
    for index in (Index(file) for file in indexes if file not in old[:-1]):
        used.update(index.files())
        for (table, step_id), names in shards.items():
            names &= index.names(table, step_id)
    for (table, step_id), names in shards.items():
        yield from (root / "tables" / table / step_id / name for name in sorted(names))
    compacted = _compacted_before(folder, before)
    yield from (file for name, file in compacted.items() if name not in used)
    yield from old[:-1]


def _invalidate_killed_compactions(folder: UPath, before: float) -> None:
    """Commit the index again where there are files that no index names: their compaction was
    killed, or suspended and would now commit an index that names what is deleted here."""
    known = {name for file in generations(folder) for name in Index(file).files()}
    if not known.issuperset(_compacted_before(folder, before)):
        index = newest_index(folder)
        commit_next(folder, index, index.read())


def _compacted_before(folder: UPath, before: float) -> dict[str, UPath]:
    """The compacted files that were written before that time, by their names in an index."""
    files = list_paths(folder, "*/*.parquet")
    return {f"{file.parent.name}/{file.name}": file for file in files if _modified(file) <= before}


def _left_over(root: UPath, found: ShardFiles, before: float) -> Iterator[UPath]:
    """Temporary files that no process will finish, journals of committed units, and what version
    0.2 kept of its checks and readers."""
    yield from [*list_paths(root, _CHECKED), *list_paths(root / _READERS, "*.lease")]
    if not is_remote(root):  # an object store has no temporary files
        before = min(before, time.time() - _SECONDS_OF_A_WRITE)
        files = [file for file in list_paths(root, "**/.*.part") if path_kind(file) == "file"]
        yield from (file for file in files if is_abandoned(file.name) or _modified(file) <= before)
    yield from committed_journals(root, _committed(root, found))


def _committed(root: UPath, found: ShardFiles) -> dict[str, dict[str, int]]:
    """step_id -> unit -> the highest attempt of its rows, over all runs."""
    index = newest_index(root / "compacted")
    return {
        step_id: highest_attempts(found.get((table, step_id), ()), index, table, step_id)
        for table, step_id in {*found, *index.steps()}
        if table != Call.table  # committed before the rows
    }


def _modified(file: UPath) -> float:
    """The time the file was written; infinite if it no longer exists."""
    try:
        return modified_at(file)
    except FileNotFoundError:
        return float("inf")


def _delete_counted(file: UPath) -> int:
    """Delete a file, which may no longer exist; returns its bytes."""
    try:
        num_bytes = file_size(file)
    except FileNotFoundError:
        return 0
    delete(file)
    return num_bytes
