"""The shards in tables/: which are there, and which of them are not compacted."""

from collections.abc import Iterator, Mapping

from upath import UPath

from pipeline.place import folders, is_remote, listed
from pipeline.rows import RECORDS
from pipeline.store.index import Index
from pipeline.store.shard_files import file_names, last_attempts, shard_name

Listing = Mapping[tuple[str, str], list[str]]
"""The names in every folder <table>/<step_id>."""


def listing(root: UPath) -> Listing:
    """What tables/ holds now. Read the index after it: what was deleted before is in it."""
    found: dict[tuple[str, str], list[str]] = {}
    if is_remote(root):
        for file in listed(root / "tables", "*/*/*"):
            found.setdefault((file.parent.parent.name, file.parent.name), []).append(file.name)
        return found
    for table in folders(root / "tables"):
        for step in folders(table):
            found[table.name, step.name] = file_names(step)
    return found


def misnamed(root: UPath, found: Listing) -> Iterator[UPath]:
    """Files among the shards of loaded record classes that are not named like shards."""
    for (table, step_id), names in sorted(found.items()):
        if table in RECORDS:
            folder = root / "tables" / table / step_id
            yield from (folder / name for name in sorted(names) if shard_name(name) is None)


def not_compacted(root: UPath, found: Listing, index: Index) -> dict[str, list[UPath]]:
    """The shards of every table that are not in the index."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), names in sorted(found.items()):
        new = set(names) - index.names(table, step_id) if names else set[str]()
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / n for n in sorted(new) if shard_name(n))
    return loose


def shown(root: UPath, found: Listing, index: Index) -> dict[str, list[UPath]]:
    """Those of them that count: the highest attempt of their unit, compacted ones included."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), names in sorted(found.items()):
        new = set(names) - index.names(table, step_id) if names else set[str]()
        compacted = index.units(table, step_id) if new else {}
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(
            folder / name
            for unit, (attempt, name) in sorted(last_attempts(new).items())
            if attempt > compacted.get(unit, 0)
        )
    return loose
