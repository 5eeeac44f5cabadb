"""Upkeep of a warehouse: compaction, removal of runs, and garbage collection, which alone deletes
files of tables.

`compact` writes the rows of many small shards into few large files, with an index. A file,
<warehouse>/compacted/<table>/<name>.parquet, is sorted by document; a shard lies in one of its row
groups, and is written again whenever its file doubles. The old state is valid until the new index
is committed. Of two concurrent compactions one commits; a compaction that lost its lease does not.

`remove_run` deletes a run's folder and records its planned units in
<warehouse>/removed/<run>.<hex>.parquet. A run that plans some of them again before `collect` has
deleted them has their rows without a call.

`collect` deletes files that were replaced or removed 24 hours ago, by this machine's clock, so that
a reader keeps its files for that long. With `older_than=0` open queries lose their files: they
fail, naming a missing file, and a new query succeeds. Planned units of removed runs stay while any
run is executed, as it may plan them again, and while the plan of any run cannot be read.
"""

import gc
import math
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.asking.replies import journal_files
from pipeline.core.calls import Call
from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.rows import empty_table
from pipeline.files import storage
from pipeline.files.lease import RUN, UPKEEP, Lease, is_a_run_at_work, lease
from pipeline.files.parquet import opened_parquet, parquet_content, read_parquet
from pipeline.store.runs.run_folder import UnitKey, planned_files, units_in
from pipeline.store.shards.damaged_files import shard_footer
from pipeline.store.shards.layout import SEARCHED, raise_layout
from pipeline.store.shards.shard_index import (
    ATTEMPT,
    KEY,
    SCHEMA,
    Index,
    check_compacted,
    generations,
    newest_index,
    parse_compacted,
)
from pipeline.store.shards.shards import list_shard_files, loose_shards

WORTH_IT = 200  # loose shards of a table: with so many, queries are noticeably slower
_GROUP_BYTES = 1_000_000  # in memory: a row group is read for the rows of one unit
# In memory. The prompts of a document share most of their text, which is stored once per page of a
# column: 31 MB of prompts took 1.0 MB in groups of a megabyte and pages of the default size.
_GROUP_BYTES_OF_CALLS = 8_000_000
# The window of zstd's level 9 is 8 MB; it takes three times the seconds of the default.
_DENSELY = {"compression_level": 9, "data_page_size": 64_000_000, "write_statistics": SEARCHED}
# In memory at once, sorted, and one file if its columns are alike; a shard takes 60 KB besides.
_BATCH_BYTES, _BATCH_SHARDS = 256_000_000, 4_000
_READ_AT_ONCE = 256  # shards
RETENTION = 24 * 3600.0  # seconds
_SECONDS_OF_A_WRITE = 3600.0  # a temporary file is older than any write takes
_CHECKED, _READERS = "checked.json", "readers"  # of version 0.2


class Compaction(NamedTuple):
    """The numbers of shards taken in and of files written, over all tables."""

    shards: int = 0
    files: int = 0


class _Piece(NamedTuple):
    """The rows of one shard, and its entry in the index (`facts`) without its new position."""

    rows: Any
    facts: dict[str, Any]


def compact(warehouse: storage.AnyPath, least: int = WORTH_IT) -> Compaction | None:
    """Compact each table with `least` loose shards or more; None if another process compacts.
    Damaged shards stay as they are. Raises DamagedError if a compacted file that is written again
    is damaged."""
    root = storage.as_path(warehouse)
    if not _tables_to_compact(root, newest_index(root / "compacted"), least):
        return Compaction()
    with lease(root, UPKEEP) as upkeep_lease:
        return None if upkeep_lease is None else _rewrite(root, upkeep_lease, least)


def _rewrite(
    root: UPath, upkeep_lease: Lease, least: float = math.inf, gone: Collection[UnitKey] = ()
) -> Compaction | None:
    """As `compact`, without the units `gone`. Returns None also if the lease was taken over."""
    raise_layout(root)
    index = newest_index(root / "compacted")
    files = _tables_to_compact(root, index, least)
    entries = index.read().cast(SCHEMA)
    is_gone = is_among(entries, gone)
    written: list[UPath] = []
    num_taken = 0
    for table in sorted({*files, *entries.filter(is_gone)["table_name"].unique().to_pylist()}):
        new = files.get(table, [])
        stay, again = _to_rewrite(root, entries, table, len(new), gone)
        pieces = _pieces(root, table, new, again)
        added = pa.concat_tables(_write(root / "compacted" / table, pieces, written))
        num_taken += added.num_rows - again.num_rows
        entries = pa.concat_tables([stay, added])
    is_needed = bool(num_taken or pc.any(is_gone).as_py())
    # `collect` may have deleted the files of a compaction that has lost its lease.
    if is_needed and upkeep_lease.is_held() and _commit_next(root / "compacted", index, entries):
        return Compaction(num_taken, len(written))
    for file in written:
        storage.delete(file)
    return None if is_needed else Compaction()


def _commit_next(folder: UPath, after: Index, rows: Any) -> bool:
    rows = rows.cast(SCHEMA).sort_by([(name, "ascending") for name in KEY])
    if rows.num_rows:  # superseded: the next entry is of the same unit
        pairs = ((rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1)) for name in KEY[:3])
        table, step, unit = (pc.equal(*pair) for pair in pairs)
        flags = pa.array([*pc.and_(pc.and_(table, step), unit).to_pylist(), False])
        column = SCHEMA.get_field_index("superseded")
        rows = rows.set_column(column, SCHEMA.field(column), flags)
    content = parquet_content(SCHEMA, [rows])
    return storage.commit(folder / f"index.{after.number + 1}.parquet", content)


def is_among(entries: Any, units: Collection[UnitKey]) -> Any:
    """An Arrow array, True for entries of these units (step_id and name)."""
    names = (entries[column].cast(pa.string()) for column in ("step_id", "unit"))
    wanted = pa.array(["/".join(unit) for unit in units], pa.string())
    return pc.is_in(pc.binary_join_element_wise(*names, "/"), wanted).combine_chunks()


def _tables_to_compact(root: UPath, index: Index, least: float) -> dict[str, list[UPath]]:
    """The loose shards of each table that has `least` or more."""
    loose = loose_shards(root, list_shard_files(root), index)
    return {table: files for table, files in loose.items() if len(files) >= least}


def _to_rewrite(
    root: UPath, entries: Any, table: str, num_new: int, gone: Collection[UnitKey]
) -> tuple[Any, Any]:
    """The entries that stay, and the entries that are written again. Written again are the table's
    files that hold some of `gone`, and small files with no more shards than are written before
    them, `num_new` loose ones first: so a shard goes only into a file with twice as many."""
    of_table = entries.filter(pc.equal(entries["table_name"], table))
    again = {*of_table.filter(is_among(of_table, gone))["file"].to_pylist()}
    counts = [("num_rows", "sum"), ("num_rows", "count"), ("num_bytes", "sum")]
    files = of_table.group_by("file").aggregate(counts).to_pylist()
    num_shards = num_new
    for row in sorted(files, key=lambda row: (row["file"] not in again, row["num_rows_count"])):
        is_small = row["num_bytes_sum"] < _BATCH_BYTES / 2
        has_few = row["num_rows_count"] <= min(num_shards, _BATCH_SHARDS / 2)
        if (is_small and has_few) or row["file"] in again:
            check_compacted(root / "compacted" / table / row["file"], row["num_rows_sum"])
            again.add(row["file"])
            num_shards += row["num_rows_count"]
    is_again = pc.is_in(entries["file"], pa.array(sorted(again), pa.string()))
    touched = entries.filter(is_again)
    return entries.filter(pc.invert(is_again)), touched.filter(pc.invert(is_among(touched, gone)))


def _pieces(root: UPath, table: str, files: list[UPath], again: Any) -> Iterator[_Piece]:
    def read_groups(opened: BinaryIO) -> list[Any]:
        file = opened_parquet(opened)
        groups = [file.read_row_group(i, use_threads=False) for i in range(file.num_row_groups)]
        return groups or [file.schema_arrow.empty_table()]

    for start in range(0, len(files), _READ_AT_ONCE):
        some = files[start : start + _READ_AT_ONCE]
        yield from (piece for piece in storage.map_files(_loose_piece, some) if piece)
    ordered = again.sort_by([("file", "ascending")]).to_pylist()
    for name, entries in groupby(ordered, key=lambda entry: entry["file"]):
        groups = parse_compacted(root / "compacted" / table / name, read_groups)
        for entry in entries:
            rows = groups[entry["row_group"]].slice(entry["first_row"], entry["num_rows"])
            # Version 0.2 wrote a checksum into the schema: no two files had the same columns.
            yield _Piece(rows.drop_columns([ATTEMPT]).replace_schema_metadata(None), entry)


def _loose_piece(path: UPath) -> _Piece | None:
    """A shard in tables/; None if it is damaged, which its readers report."""
    try:
        metadata, rows = shard_footer(path).metadata, read_parquet(storage.read(path))
    except (DamagedError, pa.ArrowInvalid, FileNotFoundError):
        return None
    table, (unit, attempt, _) = path.parent.parent.name, path.name.split(".")
    has_inputs = "input_sha" in rows.column_names and table != Call.table
    facts = {
        "table_name": table,
        "step_id": path.parent.name,
        "unit": unit,
        "attempt": int(attempt),
        "footer": [
            (k.decode(), v.decode()) for k, v in metadata.items() if k.startswith(b"gistmill.")
        ],
        "input_shas": sorted(set(rows["input_sha"].to_pylist())) if has_inputs else None,
        "num_rows": rows.num_rows,
        "num_bytes": rows.nbytes,
    }
    return _Piece(rows.replace_schema_metadata(None), facts)


def _cut(pieces: Iterable[_Piece], most_bytes: int) -> Iterator[list[_Piece]]:
    """Groups of pieces of about `most_bytes` in memory, with at most a batch's shards each."""
    group: list[_Piece] = []
    num_bytes = 0
    for piece in pieces:
        group.append(piece)
        num_bytes += piece.facts["num_bytes"]
        if num_bytes >= most_bytes or len(group) == _BATCH_SHARDS:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group


def _write(folder: UPath, pieces: Iterable[_Piece], written: list[UPath]) -> Iterator[Any]:
    """Write compacted files of one table, and add them to `written`; yields their shards' entries.
    Shards with other columns, of other versions, go into other files: a missing column is no null.
    """

    def sort_key(piece: _Piece) -> tuple[str, ...]:
        document_id = piece.rows["document_id"][0].as_py() if piece.rows.num_rows else ""
        return (document_id, *(piece.facts[name] for name in ("step_id", "unit", "attempt")))

    yield empty_table(SCHEMA)
    group_bytes = _GROUP_BYTES_OF_CALLS if folder.name == Call.table else _GROUP_BYTES
    for batch in _cut(pieces, _BATCH_BYTES):
        by_columns: dict[str, list[_Piece]] = defaultdict(list)
        for piece in sorted(batch, key=sort_key):
            by_columns[str(piece.rows.schema)].append(piece)
        for alike in by_columns.values():
            written.append(file := folder / f"{uuid.uuid4().hex}.parquet")
            groups = [*_cut(alike, group_bytes)]
            columns = _with_attempt(alike[:1]).schema
            storage.commit(file, parquet_content(columns, map(_with_attempt, groups), **_DENSELY))
            entries = []
            for number, group in enumerate(groups):
                position, first_row = {"file": file.name, "row_group": number}, 0
                for piece in group:
                    entries.append({**piece.facts, **position, "first_row": first_row})
                    first_row += piece.rows.num_rows
            yield pa.Table.from_pylist(entries, schema=SCHEMA)
        # Each of PyArrow's footers and its schema refer to one another: 25 KB a shard would stay.
        gc.collect()


def _with_attempt(pieces: list[_Piece]) -> Any:
    rows = pa.concat_tables([piece.rows for piece in pieces])
    attempts = [piece.facts["attempt"] for piece in pieces for _ in range(piece.rows.num_rows)]
    return rows.append_column(ATTEMPT, pa.array(attempts, pa.int32()))


@dataclass(frozen=True)
class Freed:
    """The files that a collection deleted, and their bytes. `is_waiting`: files of removed runs
    stay, as a run that is executed may plan them."""

    files: int
    bytes: int
    is_waiting: bool


def run_names(root: UPath) -> list[str]:
    folders = {file.parent.name for file in storage.list_paths(root / "runs", "*/*")}
    return sorted(name for name in folders if not name.startswith("."))


def removal_records(root: UPath) -> list[UPath]:
    """The files with the planned units of removed runs, which stay until `collect` has deleted the
    units that no other run plans."""
    return storage.list_paths(root / "removed", "*.parquet")


def _plans(root: UPath) -> list[UPath]:
    """The files with the planned units of every run, and the plans that killed launches of 0.2 left
    behind."""
    return [*planned_files(root), *storage.list_paths(root / "runs", "*/plan/*.parquet")]


def remove_run(root: UPath, name: str) -> int:
    """Delete a run's folder, and leave a record of its units; a second call resumes a removal that
    was killed. Returns the number of units. Raises UsageError if the run is being executed,
    DamagedError."""
    folder = root / "runs" / name
    with lease(folder, RUN) as run_lease:
        if run_lease is None:
            raise UsageError(f"run={name}: a command executes it now; stop it first")
        plans = [file for file in _plans(root) if folder in file.parents]
        units = units_in(plans)
        for file in plans:
            record = root / "removed" / f"{name}.{uuid.uuid4().hex}.parquet"
            storage.write(record, storage.read(file))
        storage.delete(folder / "units.parquet")  # from here on no command sees the run
        storage.delete_folder(folder)
        return len(units)


def collect(warehouse: storage.AnyPath, older_than: float = RETENTION) -> Freed | None:
    """Delete files that were replaced, or whose run was removed, `older_than` seconds ago or
    earlier, and what killed processes left; None if another process compacts or collects. Raises
    DamagedError if a run's planned units cannot be read."""
    root = storage.as_path(warehouse)
    with lease(root, UPKEEP) as upkeep_lease:
        if upkeep_lease is None:
            return None
        records = [f for f in removal_records(root) if _modified(f) <= time.time() - older_than]
        is_waiting = bool(records) and is_a_run_at_work(root)
        sizes = _delete_removed(root, upkeep_lease, records) if records and not is_waiting else []
        if sizes is None:
            return None
        before = time.time() - older_than  # after what was written again
        sizes += map(_delete_counted, [*_replaced(root, before), *_left_over(root, before)])
        storage.delete_if_empty(root / _READERS)
        return Freed(len(sizes), sum(sizes), is_waiting)


def _delete_removed(root: UPath, upkeep_lease: Lease, records: list[UPath]) -> list[int] | None:
    """Delete the shards and journals of the units that only these removed runs had planned, then
    the records. Returns the files' sizes, or None if another process has taken the lease over. A
    run that begins now waits."""
    used = units_in({*removal_records(root), *_plans(root)} - {*records})
    gone = units_in(records) - used
    files = [
        root / "tables" / table / step_id / name
        for (table, step_id), names in list_shard_files(root).items()
        for name in names
        if (step_id, name.partition(".")[0]) in gone
    ]
    files += [file for file, step_id, unit in journal_files(root) if (step_id, unit) in gone]
    sizes = [*map(_delete_counted, files)]
    if _rewrite(root, upkeep_lease, gone=gone) is None:
        return None
    for step_id in sorted({step_id for step_id, _ in gone} - {step_id for step_id, _ in used}):
        storage.delete(root / "steps" / f"{step_id}.json")
        storage.delete_folder(root / "shared" / step_id)
        storage.delete_folder(root / "journal" / step_id)
        for folder in storage.list_paths(root / "tables", f"*/{step_id}"):
            storage.delete_if_empty(folder)
    for record in records:
        storage.delete(record)
    return sizes


def _replaced(root: UPath, before: float) -> Iterator[UPath]:
    """Shards in tables/, compacted files and indexes that were replaced by an index written before
    that time. Compacted files that no index names come from a killed compaction."""
    shards, indexes = list_shard_files(root), generations(root / "compacted")
    old = [file for file in indexes if _modified(file) <= before]
    old_index, newest = (Index(files[-1] if files else None) for files in (old, indexes))
    for (table, step_id), names in shards.items():
        compacted = old_index.names(table, step_id) & newest.names(table, step_id)
        yield from (root / "tables" / table / step_id / name for name in names if name in compacted)
    used = {*old_index.files(), *newest.files()}
    # A file that was written after the old index may be in an index between the two.
    written_before = _modified(old[-1]) if old else 0.0
    for file in storage.list_paths(root / "compacted", "*/*.parquet"):
        if f"{file.parent.name}/{file.name}" not in used and _modified(file) <= written_before:
            yield file
    yield from old[:-1]


def _left_over(root: UPath, before: float) -> Iterator[UPath]:
    """Temporary files that no process will finish (an object store has none), and the files in
    which version 0.2 kept its checks and its readers."""
    yield from storage.list_paths(root, _CHECKED)
    yield from storage.list_paths(root / _READERS, "*.lease")
    before = min(before, time.time() - _SECONDS_OF_A_WRITE)
    # Not by `rglob`: it raises if a folder vanishes meanwhile.
    walk = [] if storage.is_remote(root) else os.walk(str(root))
    files = (root / folder / name for folder, _, names in walk for name in names
             if fnmatchcase(name, ".*.part"))  # fmt: skip
    yield from (file for file in files if _modified(file) <= before)


def _modified(file: UPath) -> float:
    """The time the file was written; infinite if it no longer exists."""
    try:
        return storage.modified_at(file)
    except FileNotFoundError:
        return math.inf


def _delete_counted(file: UPath) -> int:
    try:
        num_bytes = storage.file_size(file)
    except FileNotFoundError:
        return 0
    storage.delete(file)
    return num_bytes
