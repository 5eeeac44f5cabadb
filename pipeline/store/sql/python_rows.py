"""Rows of Python as a table of a DuckDB connection."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.core.arrow import empty_table


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
