"""The tables of a disturbed run beside those of an undisturbed one."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.core.rows import RECORDS
from pipeline.store import connect

TABLES = (
    "documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores", "calls",
)  # fmt: skip
# What the clock, the machine and the server's cache decide; all else must be equal.
RUN_TIME = {"seconds", "started_at", "worker", "cached_tokens"}
# What names the attempts at rows: of rows made again only the content is compared.
ATTEMPTS = {"unit", "input_sha", "attempt"}
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


def tables(warehouse: str | Path, *left_out: str) -> Tables:
    """The rows of the run by table and key, without run-time columns and those `left_out`."""
    with connect(warehouse, "night") as connection:
        return {table: _rows(connection, table, RUN_TIME | set(left_out)) for table in TABLES}


def contents(warehouse: str | Path) -> Tables:
    """The rows whatever attempt made them; without calls, of which each attempt has its own."""
    return {**tables(warehouse, *ATTEMPTS), "calls": {}}


def _rows(connection: Any, table: str, left_out: set[str]) -> dict[Key, list[Row]]:
    result = connection.execute(f"from {table}")
    names = [column[0] for column in result.description]
    compared = [index for index, name in enumerate(names) if name not in left_out]
    key = [names.index(name) for name in ("step_id", *RECORDS[table].key)]
    rows: dict[Key, list[Row]] = {}
    for row in result.fetchall():
        values = tuple(repr(row[index]) for index in compared)
        rows.setdefault((table, *(str(row[index]) for index in key)), []).append(values)
    return rows


def difference(undisturbed: Tables, disturbed: Tables) -> Difference:
    """Where two runs of the same words differ; nothing is left out but run-time columns."""
    wrong = Difference()
    for table in TABLES:
        expected, there = undisturbed[table], disturbed[table]
        for key in expected.keys() | there.keys():
            before, after = expected.get(key, []), there.get(key, [])
            if not after:
                wrong.lost.append(key)
            elif not before:
                wrong.added.append(key)
            elif len(after) > len(before):
                wrong.doubled.append(key)
            elif Counter(after) != Counter(before):
                wrong.changed.append(key)
    return wrong
