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


def not_compacted(found: Listing, index: Index) -> Listing:
    """The names that are not in the index."""
    left: dict[tuple[str, str], list[str]] = {}
    for (table, step_id), names in sorted(found.items()):
        known = index.names(table, step_id) if names else set[str]()
        left[table, step_id] = sorted(set(names) - known)
    return left


def misnamed(root: UPath, names: Listing) -> Iterator[UPath]:
    """Files among the shards of loaded record classes that are not named like shards."""
    for (table, step_id), own in names.items():
        if table in RECORDS:
            folder = root / "tables" / table / step_id
            yield from (folder / name for name in own if shard_name(name) is None)


def shards(root: UPath, names: Listing) -> dict[str, list[UPath]]:
    """The shards of every table."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / name for name in own if shard_name(name))
    return loose


def shown(root: UPath, names: Listing, index: Index) -> dict[str, list[UPath]]:
    """Those of them that count: the highest attempt of their unit, compacted ones included."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        compacted = index.units(table, step_id) if own else {}
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(
            folder / name
            for unit, (attempt, name) in sorted(last_attempts(own).items())
            if attempt > compacted.get(unit, 0)
        )
    return loose
