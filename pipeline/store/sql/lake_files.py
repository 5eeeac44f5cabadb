"""The compacted files of a table whose rows all count, and the counting rows of its other files:
what tables of other programs over these files are made of."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.sql_files import filled, sql_beside, text
from pipeline.store.shards.footers import read_footer
from pipeline.store.sql.connection import query
from pipeline.store.sql.read_only_files import address, addresses

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class LakeTable:
    """`columns`: the Arrow schema of all files, whose columns may be null or missing in some.
    `whole`: the files of which all rows count, with the number of rows of each. `others`: SQL for
    the counting rows of the other files, `num_others` of them."""

    name: str
    columns: Any
    whole: dict[UPath, int]
    others: str
    num_others: int

    @property
    def num_rows(self) -> int:
        return sum(self.whole.values()) + self.num_others


def lake_tables(
    connection: Any, warehouse: UPath, run: str | None, names: Collection[str] = ()
) -> list[LakeTable]:
    """The tables that have rows in compacted files; `names`: only these.

    A row counts if a run has planned it, or `run` has, and if no higher attempt of its unit is
    committed: so each row of the views `all_TABLE` that is of a run, once. Raises UsageError for a
    name that no such table has, or if there is none.
    """
    files: dict[str, dict[UPath, int]] = {}
    for row in query(connection, _SQL["files"]):
        path = warehouse / "compacted" / row["table_name"] / row["file"]
        files.setdefault(row["table_name"], {})[path] = row["num_rows"]
    for name in names:
        if name not in files:
            near = nearest(name, sorted(files), 5) or "no table yet"
            raise UsageError(f"tables={name}: no such table in compacted files; there is {near}")
    chosen = {table: own for table, own in files.items() if not names or table in names}
    found = list(_counted(connection, chosen, run))
    if not found:
        raise UsageError(f"{warehouse}: no compacted file has a row of a run; gistmill gc compacts")
    return found


def num_loose_shards(connection: Any) -> int:
    """The shards that are in no compacted file."""
    (found,) = query(connection, _SQL["loose"])
    return int(found["shards"])


def _counted(
    connection: Any, files: dict[str, dict[UPath, int]], run: str | None
) -> Iterator[LakeTable]:
    for table, sizes in files.items():
        schemas = [read_footer(file).schema.to_arrow_schema() for file in sizes]
        columns = pa.unify_schemas([schema.remove_metadata() for schema in schemas])
        key = [name for name in ("step_id", "unit", "question_id") if name in columns.names]
        rows = filled(
            _SQL["counting"],
            files=addresses(sizes),
            table=text(table),
            key=", ".join(key),
            same=" and ".join(f"r.{name} is not distinct from u.{name}" for name in key),
            planned="true" if run is None else f"run = {text(run)}",
        )
        counts = query(connection, filled(_SQL["per_file"], rows=rows))
        by_address = {row["filename"]: row["num_rows"] for row in counts}
        whole = {file: n for file, n in sizes.items() if by_address.get(address(file)) == n}
        others = [file for file in sizes if file not in whole and address(file) in by_address]
        num_others = sum(by_address[address(file)] for file in others)
        selected = filled(_SQL["others"], rows=rows, files=addresses(others))
        if whole or num_others:
            yield LakeTable(table, columns, whole, selected, num_others)
