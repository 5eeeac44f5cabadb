"""Export compacted files as tables of Delta Lake or Apache Iceberg, without copying them."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from upath import UPath

from jobs.config.options import ReadOptions
from jobs.export.lake_formats import FORMATS
from jobs.export.target import export_folder
from pipeline.core.errors import UsageError
from pipeline.files.place import is_remote, make_folder
from pipeline.store import connect
from pipeline.store.sql.lake_files import LakeTable, lake_tables, num_loose_shards
from pipeline.store.sql.sql_sandbox import write_rows
from pipeline.store.upkeep.compaction import compact

_OTHERS = "others.parquet"  # no name of a compacted file


def export_lake(
    options: ReadOptions, is_forced: bool, warn: Callable[[str], None]
) -> Mapping[str, Any]:
    """Make tables in `format=` over the warehouse's compacted files in the folder `to=`; returns
    what was made. What is loose is compacted first.

    A table has each row that a run, or `run=`, has planned once. Files of which all rows do are
    hard links to the warehouse's, which `gistmill gc` may delete without harm to the export; such
    rows of other files are written to one new file. Raises UsageError for an unknown format or
    table, without the format's package, if nothing is compacted, or if files cannot be linked.
    """
    form = options.format or next(iter(FORMATS))
    if form not in FORMATS:
        raise UsageError(f"format={form}: no such format; there are {', '.join(FORMATS)}")
    make, warehouse = FORMATS[form](), options.warehouse
    if is_remote(warehouse):
        raise UsageError(f"warehouse={warehouse}: files cannot be linked there; copy it first")
    with export_folder(options.to, is_forced) as folder:
        if compact(warehouse, least=1) is None:
            warn("another process compacts the warehouse; what is still loose is not exported")
        with connect(warehouse, options.run) as connection:
            tables = lake_tables(connection, warehouse, options.run, options.chosen_tables())
            if loose := num_loose_shards(connection):
                warn(f"{loose} shards are not compacted, and not in what is exported")
            files = [_files(connection, table, folder / table.name) for table in tables]
            made = [(t.name, t.columns, own) for t, own in zip(tables, files, strict=True)]
            places = make(folder, made)
    return {"to": options.to, "format": form, "tables": [_about(t, places) for t in tables]}


def _about(table: LakeTable, places: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "table": table.name,
        "rows": table.num_rows,
        "linked_files": len(table.whole),
        "written_anew": table.num_others,
        "open": places[table.name],
    }


def _files(connection: Any, table: LakeTable, folder: UPath) -> Mapping[UPath, int]:
    """The files of a table, made in its folder, with the number of rows of each."""
    make_folder(folder)
    found = {}
    for file, num_rows in table.whole.items():
        link = folder / file.name
        try:
            os.link(str(file), str(link))
        except OSError as error:
            raise UsageError(
                f"to={folder.parent}: files of the warehouse cannot be linked there "
                f"({error.strerror}); name a folder on the warehouse's filesystem"
            ) from None
        found[link] = num_rows
    if table.num_others:
        found[folder / _OTHERS] = write_rows(connection, table.others, folder / _OTHERS)
    return found
