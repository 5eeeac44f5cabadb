"""Reading compacted shards, by the index."""

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pipeline.place import each
from pipeline.retries import retried
from pipeline.store.index import Entry, Index, damaged, newest

_MISSING = (FileNotFoundError,)


class Compacted:
    """Reads the compacted shards of one warehouse, by its newest index as of `refresh`."""

    def __init__(self, warehouse: UPath) -> None:
        self.folder = warehouse / "compacted"
        self._index: Index | None = None
        self._footers: dict[str, Any] = {}

    @property
    def index(self) -> Index:
        return self._index or self.refresh()

    def refresh(self) -> Index:
        """Look for a newer generation. Raises what the filesystem raises."""
        while True:
            found = newest(self.folder)
            if self._index is None or found.number > self._index.number:
                try:
                    _ = found.rows
                except FileNotFoundError:  # replaced and deleted meanwhile
                    continue
                self._index = found
            return self._index

    def read(self, table: str, entry: Entry, columns: list[str] | None = None) -> Any:
        """The rows of a shard. Raises FileNotFoundError where a later compaction replaced it."""
        name = f"{table}/{entry.file}"
        path, footer = self.folder / name, self._footer(name)
        try:
            rows = retried(partial(_rows, path, footer, entry, columns), path, _MISSING)
        except pa.ArrowInvalid as error:
            raise damaged(path, f"cannot be read ({error})") from None
        return rows.slice(entry.first_row, entry.num_rows)

    def _footer(self, name: str) -> Any:
        if name not in self._footers:
            self._footers[name] = _footer(self.folder / name)
        return self._footers[name]

    def verify(self) -> None:
        """Raise DamagedError where a compacted file does not hold the rows that the index says it
        has."""
        self._footers.clear()
        each(self._verify, self.index.files().items())

    def _verify(self, file: tuple[str, int]) -> None:
        name, num_rows = file
        try:
            _check(self.folder / name, num_rows)
        except FileNotFoundError:
            if name in self.refresh().files():  # else compacted again, by another process
                raise damaged(self.folder / name, "is missing") from None


def check_compacted(path: UPath, num_rows: int) -> None:
    """Raise DamagedError unless the compacted file is there and holds `num_rows`."""
    try:
        _check(path, num_rows)
    except FileNotFoundError:
        raise damaged(path, "is missing") from None


def _check(path: UPath, num_rows: int) -> None:
    found = _footer(path).num_rows
    if found != num_rows:
        raise damaged(path, f"{found} rows, {num_rows} were written")


def _footer(path: UPath) -> Any:
    try:
        return retried(lambda: _opened_footer(path), path, _MISSING)
    except pa.ArrowInvalid as error:
        raise damaged(path, f"cannot be read ({error})") from None


def _opened_footer(path: UPath) -> Any:
    with path.open("rb") as opened:
        return pq.read_metadata(opened)


def _rows(path: UPath, footer: Any, entry: Entry, columns: list[str] | None) -> Any:
    with path.open("rb") as opened:
        file = pq.ParquetFile(opened, metadata=footer)
        if not entry.num_rows:  # a file may have no row group
            return file.schema_arrow.empty_table().select(columns or file.schema_arrow.names)
        return file.read_row_group(entry.row_group, columns=columns)
