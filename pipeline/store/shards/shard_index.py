"""The index of compacted shards, and their rows. An entry has the position of a shard in a
compacted file, and the facts of its footer.

The index is <warehouse>/compacted/index.<number>.parquet with the highest number; each is written
once and whole. A shard in it counts as committed, and a file of its name in tables/ is ignored.
"""

import io
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from typing import Any, BinaryIO, NamedTuple, TypeVar

import pyarrow as pa
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.core.rows import empty_table
from pipeline.files.parquet import opened_parquet
from pipeline.files.storage import filesystem_errors, list_paths, map_files, read
from pipeline.store.shards.damaged_files import FlawError, flaws_of_content, read_footer
from pipeline.store.shards.layout import PROBLEMS

# superseded: a higher attempt of the unit is in the index. file: in compacted/<table_name>/.
# first_row: within the row group. num_bytes: the size of the rows in memory. input_shas: the
# hashes of its questions' inputs.
SCHEMA = pa.schema(
    [
        ("table_name", pa.string()), ("step_id", pa.string()), ("unit", pa.string()),
        ("attempt", pa.int32()), ("superseded", pa.bool_()),
        ("file", pa.string()), ("row_group", pa.int32()), ("first_row", pa.int64()),
        ("num_rows", pa.int64()), ("num_bytes", pa.int64()),
        ("footer", pa.map_(pa.string(), pa.string())), ("input_shas", pa.list_(pa.string())),
    ]
)  # fmt: skip
KEY = ["table_name", "step_id", "unit", "attempt"]
ATTEMPT = "shard_attempt"  # the column that a compacted file has besides those of its shards
_LARGE = ("footer", "input_shas")  # columns that are read only where they are needed
_REPEATED = ["table_name", "step_id", "file"]
_FOOTERS_AT_ONCE = 20_000
_NUMBER = re.compile(r"index\.([1-9]\d{0,15})\.parquet")
T = TypeVar("T")


class Entry(NamedTuple):
    file: str
    row_group: int
    first_row: int
    num_rows: int


class Index:
    """One generation of a warehouse's index; `path` is None before the first compaction."""

    def __init__(self, path: UPath | None) -> None:
        self.path = path
        self.number = _number(path) if path else 0

    @cached_property
    def rows(self) -> Any:
        """All entries, by table, step, unit and attempt, without the columns in `_LARGE`."""
        return self.read([name for name in SCHEMA.names if name not in _LARGE]).combine_chunks()

    def read(self, columns: list[str] | None = None) -> Any:
        """The columns of all entries, as `rows`. Raises FileNotFoundError if the file was replaced
        and deleted."""
        if self.path is None:
            return empty_table(SCHEMA).select(columns or SCHEMA.names)
        # Not in threads: see `read_parquet`.
        return self._parsed(self.path, lambda file: file.read(columns, use_threads=False))

    def _parsed(self, path: UPath, parse: Callable[[Any], Any]) -> Any:
        content = io.BytesIO(read(path))
        with _damage(path), flaws_of_content():
            return parse(opened_parquet(content, read_dictionary=_REPEATED))

    def units(self, table: str, step_id: str) -> dict[str, int]:
        """Each unit of a step with its highest attempt."""
        return dict(self._attempts(table, step_id))  # a higher attempt comes later

    def names(self, table: str, step_id: str) -> set[str]:
        """The names that the step's shards had in tables/."""
        return {f"{unit}.{attempt}.parquet" for unit, attempt in self._attempts(table, step_id)}

    def find(self, table: str, step_id: str, unit: str, attempt: int) -> Entry | None:
        rows = self.rows.slice(*self._bounds(table, step_id))
        units, attempts = rows["unit"], rows["attempt"]

        def key(row: int) -> tuple[str, int]:
            return units[row].as_py(), attempts[row].as_py()

        number = bisect_left(range(rows.num_rows), (unit, attempt), key=key)
        if number == rows.num_rows or key(number) != (unit, attempt):
            return None
        (row,) = rows.select(Entry._fields).slice(number, 1).to_pylist()
        return Entry(**row)

    def input_shas(self, table: str, step_id: str) -> Any:
        """A table of `unit` and `input_sha`, a row per question of the step's units."""
        columns = (self._input_shas, self.rows["unit"])
        bounds = self._bounds(table, step_id)
        shas, units = (column.slice(*bounds).combine_chunks() for column in columns)
        of_unit = units.take(shas.value_parent_indices())
        return pa.table({"unit": of_unit, "input_sha": shas.flatten()})

    @cached_property
    def _input_shas(self) -> Any:
        return self.read(["input_shas"])["input_shas"]

    def problems(self, table: str, step_id: str) -> Iterator[tuple[str, int, frozenset[str]]]:
        """The unit, attempt and problems of each shard of the step whose rows have some."""
        counts = self._problem_counts.slice(*self._bounds(table, step_id)).to_pylist()
        for (unit, attempt), codes in zip(self._attempts(table, step_id), counts, strict=True):
            if codes not in (None, "{}"):
                yield unit, attempt, frozenset(json.loads(codes))

    @cached_property
    def _problem_counts(self) -> Any:
        """The column of the entries' counts of problems, as JSON."""
        import pyarrow.compute as pc  # imported here, as it takes 0.02 s of every command

        def counts(file: Any) -> list[Any]:  # some at a time: a footer takes half a kilobyte
            batches = file.iter_batches(_FOOTERS_AT_ONCE, columns=["footer"], use_threads=False)
            return [pc.map_lookup(batch["footer"], PROBLEMS, "first") for batch in batches]

        return pa.chunked_array(self._parsed(self.path, counts) if self.path else [], pa.string())

    def _attempts(self, table: str, step_id: str) -> Iterator[tuple[str, int]]:
        rows = self.rows.slice(*self._bounds(table, step_id))
        return zip(rows["unit"].to_pylist(), rows["attempt"].to_pylist(), strict=True)

    def _bounds(self, table: str, step_id: str) -> tuple[int, int]:
        return self.steps.get((table, step_id), (0, 0))

    @cached_property
    def steps(self) -> dict[tuple[str, str], tuple[int, int]]:
        """For each table and step the position of its first entry, and the number of entries."""
        tables, ids = self.rows["table_name"], self.rows["step_id"]

        def step(row: int) -> tuple[str, str]:
            return tables[row].as_py(), ids[row].as_py()

        bounds: dict[tuple[str, str], tuple[int, int]] = {}
        first = 0
        while first < self.rows.num_rows:
            end = bisect_right(range(self.rows.num_rows), step(first), lo=first, key=step)
            bounds[step(first)] = (first, end - first)
            first = end
        return bounds

    def files(self) -> dict[str, int]:
        """The compacted files, as <table>/<name>, and the number of rows in each."""
        sums = self.rows.group_by(["table_name", "file"]).aggregate([("num_rows", "sum")])
        return {f"{row['table_name']}/{row['file']}": row["num_rows_sum"]
                for row in sums.to_pylist()}  # fmt: skip


def generations(folder: UPath) -> list[UPath]:
    """The files of all generations that are still there, the newest last."""
    return sorted(filter(_number, list_paths(folder, "index.*")), key=_number)


def newest_index(folder: UPath) -> Index:
    return Index(next(reversed(generations(folder)), None))


def _number(file: UPath) -> int:
    named = _NUMBER.fullmatch(file.name)
    return int(named[1]) if named else 0


class Compacted:
    """Reads the compacted shards of one warehouse, by its newest index as of `refresh`."""

    def __init__(self, warehouse: UPath) -> None:
        self.folder = warehouse / "compacted"
        self._index: Index | None = None
        self._footer = cache(read_footer)

    @property
    def index(self) -> Index:
        return self._index or self.refresh()

    def refresh(self) -> Index:
        """Look for a newer generation. Raises what the filesystem raises."""
        while True:
            newest = newest_index(self.folder)
            if self._index and newest.number <= self._index.number:
                return self._index
            with suppress(FileNotFoundError):  # replaced and deleted meanwhile
                _ = newest.rows
                self._index = newest
                return newest

    def read(self, table: str, entry: Entry, columns: list[str] | None = None) -> Any:
        """The rows of a shard. Raises FileNotFoundError if a later compaction replaced its file."""
        path = self.folder / table / entry.file
        with _damage(path):
            footer = self._footer(path)

        def read_group(opened: BinaryIO) -> Any:
            file = opened_parquet(opened, metadata=footer)
            if not entry.num_rows:  # a file may have no row group
                return file.schema_arrow.empty_table().select(columns or file.schema_arrow.names)
            return file.read_row_group(entry.row_group, columns=columns, use_threads=False)

        return parse_compacted(path, read_group).slice(entry.first_row, entry.num_rows)

    def verify(self) -> None:
        """Raise DamagedError if a file does not hold the rows that the index states."""
        files = ((self.folder / name, num_rows) for name, num_rows in self.index.files().items())
        map_files(lambda file: check_compacted(*file), files, self.folder)


def check_compacted(path: UPath, num_rows: int) -> None:
    """Raise DamagedError unless the compacted file is there and holds `num_rows`."""
    with _damage(path):
        try:
            stored = read_footer(path).num_rows
        except FileNotFoundError:
            raise FlawError("is missing") from None
        if stored != num_rows:
            raise FlawError(f"{stored} rows, {num_rows} were written")


@contextmanager
def _damage(path: UPath) -> Iterator[None]:
    """Turn FlawError in the `with` block into DamagedError of this compacted file or index."""
    try:
        yield
    except FlawError as flaw:
        folder = next(above for above in path.parents if above.name == "compacted")
        raise DamagedError(
            path,
            f"{flaw}; put the file back from a copy, or delete {folder} and run the same command "
            "to make its rows again",
        ) from None


def parse_compacted(path: UPath, parse: Callable[[BinaryIO], T]) -> T:
    """The result of `parse` on a compacted file, of which it reads a part. Raises DamagedError if
    the content is not what a compaction wrote, FileNotFoundError, and StorageError."""
    # An error may be Arrow's or an object store's: the whole content is read again, which tells.
    with suppress(pa.ArrowException, *filesystem_errors()), path.open("rb") as opened:
        return parse(opened)
    content = io.BytesIO(read(path))
    with _damage(path), flaws_of_content():
        return parse(content)
