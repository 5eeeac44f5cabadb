"""Loose shards: those in tables/ that are not compacted."""

from collections.abc import Collection, Iterator, Mapping

from upath import UPath

from pipeline.core.rows import RECORDS
from pipeline.files.place import is_remote, list_paths
from pipeline.store.shards.shard_files import file_names, last_attempts, shard_name
from pipeline.store.shards.shard_index import Index

ShardFiles = Mapping[tuple[str, str], list[str]]
"""The names in every folder <table>/<step_id>."""


def list_shard_files(root: UPath) -> ShardFiles:
    """The file names in tables/ now. Read the index after calling this: a shard that was deleted
    before is in it."""
    found: dict[tuple[str, str], list[str]] = {}
    if is_remote(root):
        for file in list_paths(root / "tables", "*/*/*"):
            found.setdefault((file.parent.parent.name, file.parent.name), []).append(file.name)
        return found
    for step in list_paths(root / "tables", "*/*"):
        found[step.parent.name, step.name] = file_names(step)
    return found


def not_compacted(found: ShardFiles, index: Index) -> ShardFiles:
    """The names that are not in the index."""
    left: dict[tuple[str, str], list[str]] = {}
    for (table, step_id), names in sorted(found.items()):
        known = index.names(table, step_id) if names else set[str]()
        left[table, step_id] = sorted(set(names) - known)
    return left


def misnamed_files(root: UPath, names: ShardFiles) -> Iterator[UPath]:
    """Files among the shards of loaded record classes that are not named like shards, hidden ones
    excepted."""
    for (table, step_id), own in names.items():
        if table in RECORDS:
            folder = root / "tables" / table / step_id
            others = (name for name in own if shard_name(name) is None)
            yield from (folder / name for name in others if not name.startswith("."))


def loose_shards(root: UPath, names: ShardFiles) -> dict[str, list[UPath]]:
    """The shards of every table."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / name for name in own if shard_name(name))
    return loose


def current_shards(
    root: UPath, names: ShardFiles, index: Index, gone: Collection[tuple[str, str]] = ()
) -> dict[str, list[UPath]]:
    """The loose shards that count: those with the highest attempt of their unit, compacted ones
    included, but for the units `gone` (step_id and name)."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        compacted = index.units(table, step_id) if own else {}
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(
            folder / name
            for unit, (attempt, name) in sorted(last_attempts(own).items())
            if attempt > compacted.get(unit, 0) and (step_id, unit) not in gone
        )
    return loose
