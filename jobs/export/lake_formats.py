"""Table formats over Parquet files that are there: Delta Lake's and Apache Iceberg's metadata."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.place import file_size, modified_at

Tables = Sequence[tuple[str, Any, Mapping[UPath, int]]]
"""Of each table its name, the Arrow schema, and its files in the folder of its name, with the
number of rows of each."""
Make = Callable[[UPath, Tables], dict[str, str]]
"""Writes the metadata of tables in a folder; returns what a reader of each opens."""
NAMESPACE, CATALOG = "gistmill", "catalog.db"
_MISSING = "format={}: needs {}; pip install 'gistmill[lake]'"


def _delta() -> Make:
    try:
        from deltalake import DeltaTable, Schema
        from deltalake.transaction import AddAction
    except ImportError:
        raise UsageError(_MISSING.format("delta", "deltalake")) from None

    def added(file: UPath, num_rows: int) -> Any:
        stats = json.dumps({"numRecords": num_rows})
        modified = int(modified_at(file) * 1000)
        return AddAction(file.name, file_size(file), {}, modified, True, stats)

    def make(folder: UPath, tables: Tables) -> dict[str, str]:
        for name, columns, files in tables:
            schema = Schema.from_arrow(columns)
            table = DeltaTable.create(str(folder / name), schema, name=name)
            actions = [added(file, num_rows) for file, num_rows in files.items()]
            table.create_write_transaction(actions, mode="append", schema=schema)
        return {name: str(folder / name) for name, _, _ in tables}

    return make


def _iceberg() -> Make:
    """Its tables are in the namespace `gistmill` of an SQLite catalog in the folder, and can be
    opened by their metadata files, too."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError:
        raise UsageError(_MISSING.format("iceberg", "pyiceberg and SQLAlchemy")) from None

    def make(folder: UPath, tables: Tables) -> dict[str, str]:
        root = folder.absolute()
        if {*"?#"} & {*str(root)}:  # pyiceberg reads addresses as they stand, without escapes
            raise UsageError(f"to={folder}: ? and # end an address of Iceberg; name another folder")
        uri = f"sqlite:///{root / CATALOG}"
        catalog = SqlCatalog(NAMESPACE, uri=uri, warehouse=f"file://{root}")
        catalog.create_namespace(NAMESPACE)
        found = {}
        for name, columns, files in tables:
            place = f"file://{root / name}"
            table = catalog.create_table(f"{NAMESPACE}.{name}", columns, location=place)
            table.add_files([f"{place}/{file.name}" for file in files])
            found[name] = str(table.metadata_location)
        catalog.close()
        return found

    return make


FORMATS: Mapping[str, Callable[[], Make]] = {"delta": _delta, "iceberg": _iceberg}
"""By name: raises UsageError without the format's package, else returns what makes tables."""
