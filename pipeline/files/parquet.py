"""The content of Parquet files, with checksums: of each page, and of the file."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files.checksums import BLANK, PARQUET_KEY, check_parquet, with_parquet_checksum


def parquet_content(columns: Any, groups: Iterable[Any], **options: Any) -> bytes:
    """The content of a file with these columns, an Arrow schema; each table of `groups` is a row
    group. `options`: of PyArrow's ParquetWriter."""
    buffer = io.BytesIO()
    how = {"compression": "zstd", "write_page_checksum": True, **options}
    with pq.ParquetWriter(buffer, columns, **how) as file:
        for rows in groups:
            file.write_table(rows, row_group_size=max(1, rows.num_rows))
        file.add_key_value_metadata({PARQUET_KEY: BLANK})
    pa.default_memory_pool().release_unused()  # as much as the largest file needed, else
    return with_parquet_checksum(buffer.getvalue())


def opened_parquet(source: Any, **options: Any) -> Any:
    """PyArrow's ParquetFile, which checks the pages that it reads."""
    return pq.ParquetFile(source, page_checksum_verification=True, **options)


def read_parquet(content: bytes, columns: Sequence[str] | None = None) -> Any:
    """The rows of a Parquet file, of these columns. Raises ArrowInvalid if it lacks one, or is not
    as it was written.

    Read in this thread: a process that ends while a thread of Arrow's still holds a file of
    Python's aborts. Not by `read_table`, which imports pandas and starts threads in any case.
    """
    refuse_changed(content)
    try:
        rows = opened_parquet(io.BytesIO(content)).read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:  # of many kinds, by what is broken
        raise pa.ArrowInvalid(str(error)) from None
    if lacking := set(columns or ()) - {*rows.column_names}:
        raise pa.ArrowInvalid(f"no column {min(lacking)}")
    return rows.select(columns) if columns else rows


def refuse_changed(content: bytes) -> None:
    """Raise ArrowInvalid if a Parquet file does not match its checksum."""
    try:
        check_parquet(content)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None
