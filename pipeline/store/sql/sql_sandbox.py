"""Restrict a user's SQL to reading the views of a connection; write a view to a Parquet file, by
PyArrow, with the restrictions in place.

DuckDB itself keeps files, settings and extensions locked, and reads through a filesystem that
cannot write: a statement can change only what is in memory, until the connection ends. Works with
DuckDB 1.5 and 2.0.
"""

import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.files.storage import (
    delete_abandoned,
    is_remote,
    make_folder,
    move_file,
    own_folder,
    part_name,
    refuse_unreachable_path,
)
from pipeline.store.sql.connection import errors_of, expression, query
from pipeline.store.sql.read_only_files import addresses


def lock(connection: Any, files: Iterable[UPath]) -> None:
    """Let a connection read `files` and nothing else, for good: no file is written, not even to
    spill, nothing is attached or installed, no setting changed, no variable of this process
    scanned."""
    connection.execute(f"set allowed_paths = {addresses(files)}")
    connection.execute("set temp_directory = ''")
    connection.execute("set disabled_filesystems = 'LocalFileSystem'")
    connection.execute("set enable_external_access = false")
    connection.execute("set python_enable_replacements = false")
    connection.execute("set lock_configuration = true")


def rows_within(
    connection: Any, statement: str, most_rows: int, seconds: float
) -> tuple[list[dict[str, Any]], bool]:
    """The first rows of a query, and True if there are more. Raises as `query` does, and UsageError
    if they take longer than `seconds`."""
    timer = threading.Timer(seconds, connection.raw.interrupt)
    timer.start()
    try:
        rows = query(connection, statement, most_rows + 1)
    except UsageError:
        if timer.is_alive():
            raise
        more = "ask for less, or add seconds=N"
        raise UsageError(f"sql: stopped after {seconds:g} seconds; {more}") from None
    finally:
        timer.cancel()
    return rows[:most_rows], len(rows) > most_rows


_ROWS = 20_000  # at once in memory


def write_view(connection: Any, view: str, where: str | None, path: UPath) -> int:
    """Write the rows of a view for which `where` holds; returns their number. `path` is replaced.

    The file appears whole or not at all; its folder is created. Raises UsageError if users cannot
    read `view`, if `where` is no condition or fails for some row, or if a remote store has no such
    bucket; StorageError.
    """
    names = [row["name"] for row in query(connection, "show tables")]
    names = [n for n in names if not n.startswith(("raw_", "no_")) and not n.endswith("_rows")]
    if view not in names:
        raise UsageError(f"{view}: no such view; nearest: {nearest(view, names, 5)}")
    condition = expression("where", where or "true")
    statement = f'from "{view}" where ({condition}\n)'
    query(connection, f"{statement} limit 0")  # for its errors
    with _new_folder(path) as folder:
        part, num_rows = folder / path.name, 0
        with errors_of(connection):
            reader = connection.sql(statement).to_arrow_reader(_ROWS)
            with pq.ParquetWriter(str(part), reader.schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    num_rows += batch.num_rows
        with refuse_unreachable_path(path, "to") if is_remote(path) else nullcontext():
            move_file(part, path)
    return num_rows


@contextmanager
def _new_folder(path: UPath) -> Iterator[Path]:
    """A folder beside a local file; for a remote one, among this machine's temporary files."""
    if is_remote(path):
        folder = own_folder("view")
    else:
        make_folder(path.parent)
        delete_abandoned(path)
        beside = path.with_name(part_name(path.name))
        make_folder(beside)
        folder = Path(str(beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
