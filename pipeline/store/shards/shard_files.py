"""The files of shards in tables/: their names, and those that are not compacted."""

import re
from collections.abc import Iterable, Mapping

from upath import UPath

from pipeline.files.place import is_remote, list_names, list_paths
from pipeline.store.shards.shard_index import Index

_NAME = re.compile(r"(?P<unit>[0-9a-f]+)\.(?P<attempt>[1-9]\d{0,8})\.parquet")
ShardFiles = Mapping[tuple[str, str], list[str]]
"""The names in every folder <table>/<step_id>."""


def last_attempts(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """unit -> its highest attempt and the name of that shard. Other file names are left out."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        if named := shard_name(name):
            unit, attempt = named
            found[unit] = max(found.get(unit, (0, "")), (attempt, name))
    return found


def highest_attempts(
    names: Iterable[str], index: Index, table: str, step_id: str
) -> dict[str, int]:
    """unit -> the highest attempt of a step's shards, loose ones of these names and compacted ones.
    List the names before reading the index: a shard that was deleted meanwhile is in it."""
    units = index.units(table, step_id)
    for unit, (attempt, _) in last_attempts(names).items():
        units[unit] = max(attempt, units.get(unit, 0))
    return units


def shard_name(name: str) -> tuple[str, int] | None:
    """The unit and the attempt in a shard's name; None for the name of another file."""
    named = _NAME.fullmatch(name)
    return (named["unit"], int(named["attempt"])) if named else None


def list_shard_files(root: UPath) -> ShardFiles:
    """The file names in tables/ now. Read the index after calling this: a shard that was deleted
    before is in it."""
    found: dict[tuple[str, str], list[str]] = {}
    if is_remote(root):
        for file in list_paths(root / "tables", "*/*/*"):
            found.setdefault((file.parent.parent.name, file.parent.name), []).append(file.name)
        return found
    for step in list_paths(root / "tables", "*/*"):
        found[step.parent.name, step.name] = list_names(step)
    return found


def not_compacted(found: ShardFiles, index: Index) -> ShardFiles:
    """The names that are not in the index."""
    return {
        step: sorted(set(names) - index.names(*step)) if names else []
        for step, names in sorted(found.items())
    }


def loose_shards(root: UPath, names: ShardFiles) -> dict[str, list[UPath]]:
    """The shards of every table."""
    loose: dict[str, list[UPath]] = {}
    for (table, step_id), own in names.items():
        folder = root / "tables" / table / step_id
        loose.setdefault(table, []).extend(folder / name for name in own if shard_name(name))
    return loose


def current_names(names: ShardFiles, index: Index) -> ShardFiles:
    """The shards that count, of those that are not compacted: the highest attempt of their unit,
    compacted ones included."""
    current = {}
    for (table, step_id), own in names.items():
        compacted = index.units(table, step_id) if own else {}
        current[table, step_id] = [
            name
            for unit, (attempt, name) in sorted(last_attempts(own).items())
            if attempt > compacted.get(unit, 0)
        ]
    return current
