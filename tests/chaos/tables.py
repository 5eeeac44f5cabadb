"""The tables of a disturbed run beside those of an undisturbed one."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.rows import RECORDS
from pipeline.store import connect

TABLES = (
    "documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores", "calls",
)  # fmt: skip
# What the clock, the machine and the server's cache decide; all else must be equal.
RUN_TIME = {"seconds", "started_at", "worker", "cached_tokens"}
Key = tuple[str, ...]
Row = tuple[Any, ...]
Tables = dict[str, dict[Key, list[Row]]]


@dataclass(frozen=True)
class Difference:
    """Rows of the disturbed run that are not as those of the undisturbed one."""

    lost: list[Key] = field(default_factory=list)
    doubled: list[Key] = field(default_factory=list)
    changed: list[Key] = field(default_factory=list)  # same key, another content
    added: list[Key] = field(default_factory=list)  # keys that the undisturbed run lacks

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.changed or self.added)


def tables(warehouse: str | Path, run: str = "night") -> Tables:
    """The rows of a run by table and key; run-time columns left out."""
    with connect(warehouse, run) as connection:
        return {table: _rows(connection, table) for table in TABLES}


def _rows(connection: Any, table: str) -> dict[Key, list[Row]]:
    result = connection.execute(f"from {table}")
    names = [column[0] for column in result.description]
    kept = [index for index, name in enumerate(names) if name not in RUN_TIME]
    key = [names.index(name) for name in ("step_id", *RECORDS[table].key)]
    found: dict[Key, list[Row]] = {}
    for row in result.fetchall():
        own = (table, *(str(row[index]) for index in key))
        found.setdefault(own, []).append(tuple(repr(row[index]) for index in kept))
    return found


def difference(undisturbed: Tables, disturbed: Tables) -> Difference:
    """Where two runs of the same words differ; nothing is left out but run-time columns."""
    found = Difference()
    for table in TABLES:
        expected, there = undisturbed[table], disturbed[table]
        for key in expected.keys() | there.keys():
            before, after = expected.get(key, []), there.get(key, [])
            if not after:
                found.lost.append(key)
            elif not before:
                found.added.append(key)
            elif len(after) > len(before):
                found.doubled.append(key)
            elif Counter(after) != Counter(before):
                found.changed.append(key)
    return found
