"""Read and write Parquet files, with a checksum for each page."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import UsageError
from pipeline.files.storage import AnyPath, as_path

_LARGE = 100_000  # bytes; for smaller files, giving the memory back costs more than keeping it


def parquet_content(columns: Any, groups: Iterable[Any], **options: Any) -> bytes:
    """The bytes of a file with these columns (an Arrow schema) and a row group for each table of
    `groups`. `options`: of PyArrow's ParquetWriter."""
    buffer = pa.BufferOutputStream()  # BytesIO would take Python's lock at each write
    how = {"compression": "zstd", "write_page_checksum": True, **options}
    with pq.ParquetWriter(buffer, columns, **how) as file:
        for rows in groups:
            file.write_table(rows, row_group_size=max(1, rows.num_rows))
    content: bytes = buffer.getvalue().to_pybytes()
    del buffer
    if len(content) > _LARGE:  # or the process keeps as much as its largest file has needed
        pa.default_memory_pool().release_unused()
    return content


def opened_parquet(source: Any, **options: Any) -> Any:
    """PyArrow's ParquetFile, set to check the pages that it reads."""
    return pq.ParquetFile(source, page_checksum_verification=True, **options)


def read_parquet(content: bytes, columns: Sequence[str] | None = None) -> Any:
    """The rows of a Parquet file, of these columns. Raises ArrowInvalid if it lacks one, or is
    damaged.

    Reads in this thread: a process that ends while a thread of Arrow's holds a file of Python's
    aborts. Arrow's `read_table` would import pandas, and always starts threads.
    """
    try:
        rows = opened_parquet(pa.BufferReader(content)).read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:  # the class depends on the damage
        raise pa.ArrowInvalid(str(error)) from None
    if lacking := set(columns or ()) - {*rows.column_names}:
        raise pa.ArrowInvalid(f"no column {min(lacking)}")
    return rows.select(columns) if columns else rows


def read_parquet_rows(path: AnyPath) -> Iterator[dict[str, Any]]:
    """The rows of a user's Parquet file, streamed. Raises UsageError if it is not readable."""
    try:
        with as_path(path).open("rb") as file:
            for batch in pq.ParquetFile(file).iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"{path}: not a readable Parquet file ({line}); write it again") from None
