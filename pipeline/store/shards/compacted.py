"""Read compacted shards through the index."""

import io
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, BinaryIO, TypeVar

from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.parquet import opened_parquet
from pipeline.files.place import map_files, read
from pipeline.files.storage_retries import with_retries
from pipeline.store.shards.footers import FlawError, flaws_of_content, read_footer
from pipeline.store.shards.shard_index import Entry, Index, damaged_compaction, newest_index

T = TypeVar("T")


class Compacted:
    """Reads the compacted shards of one warehouse, by its newest index as of `refresh`."""

    def __init__(self, warehouse: UPath) -> None:
        self.folder = warehouse / "compacted"
        self._index: Index | None = None
        self._footer = cache(_footer)

    @property
    def index(self) -> Index:
        return self._index or self.refresh()

    def refresh(self) -> Index:
        """Look for a newer generation. Raises what the filesystem raises."""
        while True:
            found = newest_index(self.folder)
            if self._index and found.number <= self._index.number:
                return self._index
            with suppress(FileNotFoundError):  # replaced and deleted meanwhile
                _ = found.rows
                self._index = found
                return found

    def read(self, table: str, entry: Entry, columns: list[str] | None = None) -> Any:
        """The rows of a shard. Raises FileNotFoundError if a later compaction replaced its file."""
        path = self.folder / table / entry.file
        footer = self._footer(path)

        def read_group(opened: BinaryIO) -> Any:
            file = opened_parquet(opened, metadata=footer)
            if not entry.num_rows:  # a file may have no row group
                return file.schema_arrow.empty_table().select(columns or file.schema_arrow.names)
            return file.read_row_group(entry.row_group, columns=columns, use_threads=False)

        rows = with_retries(partial(parse_file, path, read_group), path, (FileNotFoundError,))
        return rows.slice(entry.first_row, entry.num_rows)

    def verify(self) -> None:
        """Raise DamagedError if a compacted file does not hold the rows that the index states."""
        self._footer.cache_clear()
        map_files(self._verify, self.index.files().items(), self.folder)

    def _verify(self, file: tuple[str, int]) -> None:
        name, num_rows = file
        try:
            check_compacted(self.folder / name, num_rows)
        except DamagedError:
            if name in self.refresh().files():  # else compacted again, by another process
                raise


def check_compacted(path: UPath, num_rows: int) -> None:
    """Raise DamagedError unless the compacted file is there and holds `num_rows`."""
    try:
        found = _footer(path).num_rows
    except FileNotFoundError:
        raise damaged_compaction(path, "is missing") from None
    if found != num_rows:
        raise damaged_compaction(path, f"{found} rows, {num_rows} were written")


def _footer(path: UPath) -> Any:
    try:
        return read_footer(path)
    except FlawError as flaw:
        raise damaged_compaction(path, str(flaw)) from None


def parse_file(path: UPath, parse: Callable[[BinaryIO], T]) -> T:
    """The result of `parse` on a compacted file. Raises DamagedError if the content is not what a
    compaction wrote, and the filesystem's errors.

    An OSError without a number comes from Arrow or from an object store; parsing the content again
    tells which.
    """
    with suppress(FlawError), flaws_of_content(), path.open("rb") as opened:
        return parse(opened)
    content = io.BytesIO(read(path))
    try:
        with flaws_of_content():
            return parse(content)
    except FlawError as flaw:
        raise damaged_compaction(path, str(flaw)) from None
