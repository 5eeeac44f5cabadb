"""Write a view to a Parquet file by pyarrow, with the connection's locks in place; show rows of
Python as a table of a DuckDB connection."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from upath import UPath

from pipeline.core.arrow import empty_table
from pipeline.core.errors import UsageError
from pipeline.files.place import is_remote, make_folder, move_file, refuse_unwritable_path
from pipeline.store.sql.connection import errors_of, errors_of_arrow, query
from pipeline.store.sql.sql_sandbox import expression

_ROWS = 20_000  # at once in memory
_VIEWS = "select view_name from duckdb_views() where not internal order by view_name"


def view_names(connection: Any) -> list[str]:
    """The views that users read, without those that others are made of."""
    names = [row["view_name"] for row in query(connection, _VIEWS)]
    return [n for n in names if not n.startswith(("raw_", "no_")) and not n.endswith("_rows")]


def write_view(connection: Any, view: str, where: str | None, path: UPath) -> int:
    """Write the rows of a view for which `where` holds; returns their number. `path` is replaced.

    The file appears whole or not at all; its folder is created. Raises UsageError if `view` is no
    view or `where` no condition, or one that fails for some row, or if a remote store has no such
    bucket; StorageError.
    """
    if view not in view_names(connection):
        raise UsageError(f"{view!r} is no view")
    condition = expression(connection, "where", where or "true")
    statement = f'from "{view}" where ({condition}\n)'
    query(connection, f"{statement} limit 0")  # for its errors
    with _beside(path) as part:
        with errors_of(connection), errors_of_arrow():
            num_rows = _write(connection, statement, part)
        with refuse_unwritable_path(path, "to"):
            move_file(Path(part), path)
    return num_rows


def _write(connection: Any, statement: str, part: str) -> int:
    reader = connection.sql(statement).to_arrow_reader(_ROWS)
    num_rows = 0
    with pq.ParquetWriter(part, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


@contextmanager
def _beside(path: UPath) -> Iterator[str]:
    """A temporary file in the same folder, which is made, or in that of this machine for a remote
    one."""
    folder = None if is_remote(path) else str(path.parent)
    if folder is not None:
        make_folder(path.parent)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".", suffix=".part") as beside:
        yield str(Path(beside) / path.name)


def create_table(
    connection: Any, name: str, columns: Any, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Create a table of `rows`, which have all `columns`, an Arrow schema.

    Not by way of an Arrow table: to make one of Python's values PyArrow imports pandas, which takes
    a fifth of a second of every command, and DuckDB 1.5 hands it filters that it does not know.
    """
    types = connection.from_arrow(empty_table(columns)).types
    lists = [[row[column] for row in rows] for column in columns.names]
    made = zip(columns.names, types, strict=True)
    selected = ", ".join(f'unnest(?::{type_}[]) as "{column}"' for column, type_ in made)
    connection.execute(f"create or replace table {name} as select {selected}", lists)
