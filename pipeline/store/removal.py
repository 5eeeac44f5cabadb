"""Removal of a run: its folder, then all that no other run uses of what it planned.

The run's planned inputs are first copied to <warehouse>/removed/<run>.parquet, so that a removal
that was killed can be made again: with that file it goes on where it stopped. A run that begins
meanwhile plans again (`times_taken` of the lease `removal`), so what it uses is never deleted; a
removal that was suspended for longer than its leases ends instead of going on.
A command that only reads and has chosen its files may miss some, as with `gc older_than=0`; it says
so. Compacted files are written anew without the run's rows; the old ones stay for `collect`.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from upath import UPath

from pipeline.errors import IncompleteError
from pipeline.place import delete, delete_folder, exists, is_remote, kind, listed, read, write
from pipeline.store.collection import deleted
from pipeline.store.compacted import check_compacted
from pipeline.store.compaction import rewritten
from pipeline.store.index import SCHEMA, commit_next, newest
from pipeline.store.lease import Held
from pipeline.store.loose import listing
from pipeline.store.shard_files import shard_name
from pipeline.store.views import check_planned

LEASE = "removal"  # held in <warehouse>/runs/
_PLANNED = "units.parquet"
_UNIT = ["step_id", "unit"]


@dataclass(frozen=True)
class Removed:
    """What a removal deleted, and how many units of the run stay, as other runs use them.
    `labels`: those that people gave to its answers."""

    files: int
    bytes: int
    kept_units: int
    labels: int = 0


def run_names(root: UPath) -> list[str]:
    """The runs that can be removed, those whose removal was begun included."""
    folders = {file.parent.name for file in listed(root / "runs", "*/*")}
    begun = {file.stem for file in listed(root / "removed", "*.parquet")}
    return sorted({name for name in folders | begun if not name.startswith(".")})


def is_begun(root: UPath, name: str) -> bool:
    """Whether a removal of this run was begun and not ended."""
    return exists(_marker(root, name))


def forget(root: UPath, name: str) -> None:
    """Delete the run's folder. What it planned is kept for `purge`. Hold its lease and `LEASE`.

    Raises DamagedError where its planned inputs cannot be read.
    """
    planned = root / "runs" / name / _PLANNED
    if exists(planned):
        check_planned(planned)
        write(_marker(root, name), read(planned))
        delete(planned)  # from here on no command sees the run
    delete_folder(planned.parent)


def purge(root: UPath, name: str, held: Sequence[Held]) -> Removed:
    """Delete what no other run uses of a run that `forget` has forgotten. `held`: `LEASE` and that
    of compactions. Raises DamagedError where the planned inputs of another run cannot be read, and
    IncompleteError where a lease has lapsed: a run that began meanwhile may use what is left."""
    if not is_begun(root, name):  # it had planned nothing
        return Removed(0, 0, 0)
    own = _units(_marker(root, name))
    used: set[tuple[str, str]] = set()
    for planned in listed(root / "runs", f"*/{_PLANNED}"):
        check_planned(planned)
        used |= _units(planned)
    gone = own - used
    files = [*_loose(root, gone), *_journals(root, gone)]
    num_bytes = 0
    for file in files:
        _refuse_lapsed(held)
        num_bytes += deleted(file)
    _rewrite(root, gone, held)
    steps = {step_id for step_id, _ in gone} - {step_id for step_id, _ in used}
    for step_id in sorted(steps):
        _refuse_lapsed(held)
        _delete_step(root, step_id)
    delete(_marker(root, name))
    return Removed(len(files), num_bytes, len(own & used))


def _refuse_lapsed(held: Sequence[Held]) -> None:
    if any(one.has_lapsed() for one in held):
        raise IncompleteError(
            "the removal was suspended for too long, and runs may have begun meanwhile; run the "
            "same command to go on with it"
        )


def _marker(root: UPath, name: str) -> UPath:
    return root / "removed" / f"{name}.parquet"


def _units(planned: UPath) -> set[tuple[str, str]]:
    """The units in a file of planned inputs, as (step_id, unit)."""
    rows = pq.read_table(io.BytesIO(read(planned)), columns=_UNIT)
    pairs = rows.group_by(_UNIT).aggregate([])
    return set(zip(*(pairs[name].to_pylist() for name in _UNIT), strict=True))


def _loose(root: UPath, gone: set[tuple[str, str]]) -> Iterator[UPath]:
    """The files of these units in tables/, of every attempt."""
    for (table, step_id), names in sorted(listing(root).items()):
        for name in sorted(names):
            named = shard_name(name)
            if named and (step_id, named[0]) in gone:
                yield root / "tables" / table / step_id / name


def _journals(root: UPath, gone: set[tuple[str, str]]) -> Iterator[UPath]:
    """The calls of these units, where a killed process has left them uncommitted."""
    for file in listed(root / "journal", "*/*/*.jsonl"):
        if (file.parent.parent.name, file.parent.name.partition(".")[0]) in gone:
            yield file


def _rewrite(root: UPath, gone: set[tuple[str, str]], held: Sequence[Held]) -> None:
    """Commit an index without these units. The files that have rows of them, too, are written anew
    without them, as every row of a compacted file is shown. Raises DamagedError."""
    folder = root / "compacted"
    while True:
        index, written = newest(folder), list[UPath]()
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
            parts.append(rewritten(root, table, [], own, written))
        _refuse_lapsed(held)
        if commit_next(folder, index, pa.concat_tables(parts)):
            return
        for file in written:  # another process has compacted after all: begin again
            delete(file)


def _is_among(entries: pa.Table, units: Iterable[tuple[str, str]]) -> pa.Array:
    found = set(units)
    pairs = zip(*(entries[name].to_pylist() for name in _UNIT), strict=True)
    return pa.array([pair in found for pair in pairs], pa.bool_())


def _delete_step(root: UPath, step_id: str) -> None:
    """Delete a step's description, its shared replies, and the folders that it leaves empty."""
    delete(root / "steps" / f"{step_id}.json")
    for folder in (root / "shared" / step_id, root / "journal" / step_id):
        if kind(folder) == "directory":
            delete_folder(folder)
    if is_remote(root):  # an object store has no folders
        return
    for folder in listed(root / "tables", f"*/{step_id}"):
        if not listed(folder):
            delete_folder(folder)
