"""Compaction: many small shards become few large files and an index, row for row.

Its time is linear in the new shards; a shard is written again whenever its file doubles, and the
index each time.

<warehouse>/compacted/<table>/<name>.parquet, sorted by document, with row groups of about a
megabyte; a shard lies in one row group. Replaced files stay until `collect` deletes them. The old
state is valid until the new index is committed. Of two concurrent compactions one commits, and one
that has lost its lease does not.
"""

import gc
import math
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.core.calls import Call
from pipeline.core.errors import DamagedError
from pipeline.core.rows import empty_table
from pipeline.files.lease import UPKEEP, Lease, lease
from pipeline.files.parquet import opened_parquet, parquet_content, read_parquet
from pipeline.files.storage import AnyPath, as_path, commit, delete, map_files, read
from pipeline.store.runs.planned_units import UnitKey
from pipeline.store.shards.damaged_files import shard_footer
from pipeline.store.shards.layout import SEARCHED, raise_layout
from pipeline.store.shards.shard_index import (
    ATTEMPT,
    KEY,
    SCHEMA,
    Index,
    check_compacted,
    newest_index,
    parse_compacted,
)
from pipeline.store.shards.shards import list_shard_files, loose_shards

WORTH_IT = 200  # loose shards of a table, from which on queries wait for them noticeably
_GROUP_BYTES = 1_000_000  # in memory: a row group is read for the rows of one unit
# In memory. The prompts of a document share most of their text, which is stored once per page of a
# column: 31 MB of prompts took 1.0 MB in groups of a megabyte and pages of the default size.
_GROUP_BYTES_OF_CALLS = 8_000_000
# The window of zstd's level 9 is 8 MB; it takes three times the seconds of the default.
_DENSELY = {"compression_level": 9, "data_page_size": 64_000_000, "write_statistics": SEARCHED}
# In memory at once, sorted, and one file if its columns are alike; a shard takes 60 KB besides.
_BATCH_BYTES, _BATCH_SHARDS = 256_000_000, 4_000
_READ_AT_ONCE = 256  # shards


class Compaction(NamedTuple):
    """The counts of a compaction: shards taken in and files written, over all tables."""

    shards: int = 0
    files: int = 0


class _Piece(NamedTuple):
    """The rows of one shard. `facts`: its entry in the index; its new position is missing there."""

    rows: Any
    facts: dict[str, Any]


def compact(warehouse: AnyPath, least: int = WORTH_IT) -> Compaction | None:
    """Compact each table with `least` loose shards or more; None if another process compacts.
    Shards that cannot be read or lack rows stay as they are. Raises DamagedError if a compacted
    file that is written again cannot be read, and StorageError."""
    root = as_path(warehouse)
    if not _worth(root, newest_index(root / "compacted"), least):
        return Compaction()
    with lease(root, UPKEEP) as upkeep_lease:
        return None if upkeep_lease is None else rewrite(root, upkeep_lease, least)


def rewrite(
    root: UPath, upkeep_lease: Lease, least: float = math.inf, gone: Collection[UnitKey] = ()
) -> Compaction | None:
    """Compact, and leave the units `gone` out. As `compact`; None, too, if another process has
    taken the lease over meanwhile."""
    raise_layout(root)
    index = newest_index(root / "compacted")
    files = _worth(root, index, least)
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
        delete(file)
    return None if is_needed else Compaction()


def _commit_next(folder: UPath, after: Index, rows: Any) -> bool:
    """Write the next generation; False if another process has written it before."""
    rows = rows.cast(SCHEMA).sort_by([(name, "ascending") for name in KEY])
    if rows.num_rows:  # superseded: the next entry is of the same unit
        pairs = ((rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1)) for name in KEY[:3])
        table, step, unit = (pc.equal(*pair) for pair in pairs)
        flags = pa.array([*pc.and_(pc.and_(table, step), unit).to_pylist(), False])
        column = SCHEMA.get_field_index("superseded")
        rows = rows.set_column(column, SCHEMA.field(column), flags)
    content = parquet_content(SCHEMA, [rows])
    return commit(folder / f"index.{after.number + 1}.parquet", content)


def is_among(entries: Any, units: Collection[tuple[str, str]]) -> Any:
    """An Arrow array, True for entries of these units (step_id and name)."""
    names = (entries[column].cast(pa.string()) for column in ("step_id", "unit"))
    wanted = pa.array(["/".join(unit) for unit in units], pa.string())
    return pc.is_in(pc.binary_join_element_wise(*names, "/"), wanted).combine_chunks()


def _worth(root: UPath, index: Index, least: float) -> dict[str, list[UPath]]:
    loose = loose_shards(root, list_shard_files(root), index)
    return {table: files for table, files in loose.items() if len(files) >= least}


def _to_rewrite(
    root: UPath, entries: Any, table: str, num_new: int, gone: Collection[UnitKey]
) -> tuple[Any, Any]:
    """The entries that stay, and those that are written again: of the table's files that hold some
    of `gone`, and of small files with no more shards than are written before them, `num_new` loose
    ones first. So a shard is written again only into a file with twice as many, however often a
    warehouse is compacted. Raises DamagedError if a file that is written again is not whole."""
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
        yield from (piece for piece in map_files(_loose_piece, some) if piece)
    ordered = again.sort_by([("file", "ascending")]).to_pylist()
    for name, entries in groupby(ordered, key=lambda entry: entry["file"]):
        groups = parse_compacted(root / "compacted" / table / name, read_groups)
        for entry in entries:
            rows = groups[entry["row_group"]].slice(entry["first_row"], entry["num_rows"])
            # Without the checksum that version 0.2 wrote: no two files would have the same columns.
            yield _Piece(rows.drop_columns([ATTEMPT]).replace_schema_metadata(None), entry)


def _loose_piece(path: UPath) -> _Piece | None:
    """A shard in tables/; None if it is damaged, which its readers report."""
    try:
        metadata, rows = shard_footer(path).metadata, read_parquet(read(path))
    except (DamagedError, pa.ArrowInvalid, FileNotFoundError):
        return None
    table, (unit, attempt, _) = path.parent.parent.name, path.name.split(".")
    has_inputs = "input_sha" in rows.column_names and table != Call.table
    facts = {
        "table_name": table,
        "step_id": path.parent.name,
        "unit": unit,
        "attempt": int(attempt),
        "footer": [(k.decode(), v.decode()) for k, v in metadata.items() if k[:9] == b"gistmill."],
        "input_shas": sorted(set(rows["input_sha"].to_pylist())) if has_inputs else None,
        "num_rows": rows.num_rows,
        "num_bytes": rows.nbytes,
    }
    return _Piece(rows.replace_schema_metadata(None), facts)


def _cut(pieces: Iterable[_Piece], most_bytes: int) -> Iterator[list[_Piece]]:
    """Groups of pieces of about `most_bytes` in memory, with at most a batch's shards each."""
    run: list[_Piece] = []
    num_bytes = 0
    for piece in pieces:
        run.append(piece)
        num_bytes += piece.facts["num_bytes"]
        if num_bytes >= most_bytes or len(run) == _BATCH_SHARDS:
            yield run
            run, num_bytes = [], 0
    if run:
        yield run


def _position(piece: _Piece) -> tuple[str, ...]:
    document_id = piece.rows["document_id"][0].as_py() if piece.rows.num_rows else ""
    return (document_id, *(piece.facts[name] for name in ("step_id", "unit", "attempt")))


def _write(folder: UPath, pieces: Iterable[_Piece], written: list[UPath]) -> Iterator[Any]:
    """Write compacted files of one table, and add them to `written`; yields their shards' entries.
    Shards with different columns go into different files, so that a column that an earlier version
    did not write stays missing instead of null."""
    yield empty_table(SCHEMA)
    group_bytes = _GROUP_BYTES_OF_CALLS if folder.name == Call.table else _GROUP_BYTES
    for batch in _cut(pieces, _BATCH_BYTES):
        by_columns: dict[str, list[_Piece]] = defaultdict(list)
        for piece in sorted(batch, key=_position):
            by_columns[str(piece.rows.schema)].append(piece)
        for alike in by_columns.values():
            written.append(file := folder / f"{uuid.uuid4().hex}.parquet")
            groups = [*_cut(alike, group_bytes)]
            columns = _with_attempt(alike[:1]).schema
            commit(file, parquet_content(columns, map(_with_attempt, groups), **_DENSELY))
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
