"""The warehouse: Parquet shards, the runs' files, and DuckDB views over both.

`connect(warehouse)` is the public way in; it reads committed files only and locks none.
"""

from pipeline.store.accounts import accounts
from pipeline.store.shards import Shards, read_parquet_rows
from pipeline.store.views import connect, query, run_name

__all__ = [
    "Shards",
    "accounts",
    "connect",
    "query",
    "read_parquet_rows",
    "run_name",
]
