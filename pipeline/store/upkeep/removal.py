"""Removal of a run: its folder, then everything it planned that no other run uses.

The run's planned inputs are first copied to <warehouse>/removed/<run>.parquet, so that a removal
that was killed can be resumed from that file. A run that starts meanwhile plans again
(`times_taken` of the lease `removal`), so what it uses is never deleted; a removal that was
suspended for longer than its leases ends instead of continuing. A command that is reading may miss
some of its files, as with `gc older_than=0`, and reports that. Compacted files are rewritten
without the run's rows; the old ones stay for `collect`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.core.arrow import read_parquet
from pipeline.core.errors import IncompleteError
from pipeline.files.place import (
    delete,
    delete_folder,
    exists,
    is_remote,
    list_paths,
    path_kind,
    read,
    write,
)
from pipeline.store.runs.planned_units import check_planned
from pipeline.store.shards.compacted import check_compacted
from pipeline.store.shards.loose import list_shard_files
from pipeline.store.shards.shard_files import shard_name
from pipeline.store.shards.shard_index import SCHEMA, commit_next, newest_index
from pipeline.store.upkeep.compaction import write_compacted
from pipeline.store.upkeep.garbage import delete_counted
from pipeline.store.upkeep.lease import Lease

LEASE = "removal"  # held in <warehouse>/runs/
_PLANNED = "units.parquet"
_UNIT = ["step_id", "unit"]


@dataclass(frozen=True)
class Removed:
    """The counts of a removal: files and bytes deleted, and units of the run that stay, as other
    runs use them. `labels`: those that people gave to its answers."""

    files: int
    bytes: int
    kept_units: int
    labels: int = 0


def run_names(root: UPath) -> list[str]:
    """The runs that can be removed, including those whose removal was begun."""
    folders = {file.parent.name for file in list_paths(root / "runs", "*/*")}
    begun = {file.stem for file in list_paths(root / "removed", "*.parquet")}
    return sorted({name for name in folders | begun if not name.startswith(".")})


def is_begun(root: UPath, name: str) -> bool:
    """True if a removal of this run was begun and not ended."""
    return exists(_marker(root, name))


def delete_run_folder(root: UPath, name: str) -> None:
    """Delete the run's folder. Its planned inputs are kept for `delete_unused_units`. Hold the
    run's lease and `LEASE`.

    Raises DamagedError if the planned inputs cannot be read.
    """
    planned = root / "runs" / name / _PLANNED
    if exists(planned):
        check_planned(planned)
        write(_marker(root, name), read(planned))
        delete(planned)  # from here on no command sees the run
    delete_folder(planned.parent)


def delete_unused_units(root: UPath, name: str, held: Sequence[Lease]) -> Removed:
    """Delete everything that no other run uses, of a run whose folder was deleted. `held`: `LEASE`
    and that of compactions. Raises DamagedError if the planned inputs of another run cannot be
    read, and IncompleteError if a lease has lapsed: a run that started meanwhile may use what is
    left."""
    if not is_begun(root, name):  # the run had planned nothing
        return Removed(0, 0, 0)
    own = _units(_marker(root, name))
    used: set[tuple[str, str]] = set()
    for planned in list_paths(root / "runs", f"*/{_PLANNED}"):
        check_planned(planned)
        used |= _units(planned)
    gone = own - used
    files = [*_loose(root, gone), *_journals(root, gone)]
    num_bytes = 0
    for file in files:
        _refuse_lapsed(held)
        num_bytes += delete_counted(file)
    _rewrite(root, gone, held)
    steps = {step_id for step_id, _ in gone} - {step_id for step_id, _ in used}
    for step_id in sorted(steps):
        _refuse_lapsed(held)
        _delete_step(root, step_id)
    delete(_marker(root, name))
    return Removed(len(files), num_bytes, len(own & used))


def _refuse_lapsed(held: Sequence[Lease]) -> None:
    if any(one.has_lapsed() for one in held):
        raise IncompleteError(
            "the removal was suspended for too long, and runs may have begun meanwhile; run the "
            "same command to go on with it"
        )


def _marker(root: UPath, name: str) -> UPath:
    return root / "removed" / f"{name}.parquet"


def _units(planned: UPath) -> set[tuple[str, str]]:
    """The units in a file of planned inputs, as (step_id, unit)."""
    rows = read_parquet(read(planned), _UNIT)
    pairs = rows.group_by(_UNIT).aggregate([])
    return set(zip(*(pairs[name].to_pylist() for name in _UNIT), strict=True))


def _loose(root: UPath, gone: set[tuple[str, str]]) -> Iterator[UPath]:
    """The files of these units in tables/, of every attempt."""
    for (table, step_id), names in sorted(list_shard_files(root).items()):
        for name in sorted(names):
            named = shard_name(name)
            if named and (step_id, named[0]) in gone:
                yield root / "tables" / table / step_id / name


def _journals(root: UPath, gone: set[tuple[str, str]]) -> Iterator[UPath]:
    """The journal files of these units, whose calls a killed process has left uncommitted."""
    for file in list_paths(root / "journal", "*/*/*.jsonl"):
        if (file.parent.parent.name, file.parent.name.partition(".")[0]) in gone:
            yield file


def _rewrite(root: UPath, gone: set[tuple[str, str]], held: Sequence[Lease]) -> None:
    """Commit an index without these units. Files that hold rows of theirs among others are
    rewritten without them, as every row of a compacted file is shown. Raises DamagedError."""
    folder = root / "compacted"
    while True:
        index, written = newest_index(folder), list[UPath]()
        entries = index.read().cast(SCHEMA)
        is_gone = _is_among(entries, gone)
        if not pc.any(is_gone).as_py():
            return
        touched = entries.filter(is_gone)["file"].unique()
        is_touched = pc.is_in(entries["file"], touched)
        again = entries.filter(pc.and_(is_touched, pc.invert(is_gone)))
        parts = [entries.filter(pc.invert(is_touched))]
        for table in again["table_name"].unique().to_pylist():
            own = again.filter(pc.equal(again["table_name"], table))
            for name in own["file"].unique().to_pylist():
                check_compacted(folder / table / name, index.files()[f"{table}/{name}"])
            parts.append(write_compacted(root, table, [], own, written))
        _refuse_lapsed(held)
        if commit_next(folder, index, pa.concat_tables(parts)):
            return
        for file in written:  # another process has compacted meanwhile: begin again
            delete(file)


def _is_among(entries: pa.Table, units: Iterable[tuple[str, str]]) -> pa.Array:
    found = set(units)
    pairs = zip(*(entries[name].to_pylist() for name in _UNIT), strict=True)
    return pa.array([pair in found for pair in pairs], pa.bool_())


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
