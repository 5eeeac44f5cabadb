"""The warehouse: Parquet shards, the runs' files, and DuckDB views over both.

`connect(warehouse)` is the public way in; it reads committed files only and locks none. What needs
DuckDB is imported when it is first asked for: workers, which start for every execution, never do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline.store.shards import Shards, read_parquet_rows

if TYPE_CHECKING:
    from pipeline.store.accounts import accounts
    from pipeline.store.views import connect, query, run_name

__all__ = [
    "Shards",
    "accounts",
    "connect",
    "query",
    "read_parquet_rows",
    "run_name",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    views = import_module("pipeline.store.views")
    module = import_module("pipeline.store.accounts") if name == "accounts" else views
    # Kept under its name, which is also that of a module: importing that has just taken it.
    globals()[name] = found = getattr(module, name)
    return found
