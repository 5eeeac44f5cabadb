"""The warehouse: Parquet shards, the runs' files, and DuckDB views over both.

`connect(warehouse)` is the public entry point; it reads committed files only and takes no locks.
"""

from typing import Any

from pipeline.files.storage import AnyPath
from pipeline.store.shards.shards import Shards

__all__ = ["Shards", "connect"]


def connect(warehouse: AnyPath, run: str | None = None, unsafe: bool = False) -> Any:
    """An in-memory DuckDB connection with the views of one run, by default the latest.

    Its SQL reads the files committed so far and no others, writes none, and changes no setting;
    make a DataFrame available to it by `register`. `unsafe` lifts the locks: COPY, ATTACH and the
    like work. Damaged files are left out with a LeftOutWarning each; the view `left_out` lists
    them. Raises UsageError if the warehouse or the run does not exist, DamagedError if the run's
    plan cannot be read.
    """
    from pipeline.store.sql import connect as sql  # so that workers start without DuckDB

    return sql.connect(warehouse, run, unsafe)
