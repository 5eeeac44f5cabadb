"""The rows of a disturbed run beside those of an undisturbed one."""

from collections import Counter
from pathlib import Path

from pipeline.core.rows import RECORDS
from pipeline.store import connect

TABLES = (
    "documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores", "calls",
)  # fmt: skip
# What the clock, the machine and the server's cache decide; all else must be equal.
RUN_TIME = {"seconds", "started_at", "worker", "cached_tokens"}
# What names the attempts at rows: of rows made again only the content is compared.
ATTEMPTS = {"unit", "input_sha", "attempt"}
Rows = Counter[tuple[str, ...]]


def rows(warehouse: str | Path, *left_out: str) -> Rows:
    """The rows of the run, with their table, without run-time columns and those `left_out`."""
    found = Rows()
    with connect(warehouse, "night") as connection:
        for table in TABLES:
            result = connection.execute(f"from {table}")
            names = [column[0] for column in result.description]
            compared = [n for n, name in enumerate(names) if name not in {*RUN_TIME, *left_out}]
            found.update((table, *(repr(row[n]) for n in compared)) for row in result.fetchall())
    return found


def contents(warehouse: str | Path) -> Rows:
    """The rows whatever attempt made them; without calls, of which each attempt has its own."""
    found = rows(warehouse, *ATTEMPTS)
    return Rows({row: number for row, number in found.items() if row[0] != "calls"})


def keys(warehouse: str | Path, *tables: str) -> Rows:
    """What names the rows of these tables."""
    found = Rows()
    with connect(warehouse, "night") as connection:
        for table in tables:
            statement = f"select step_id, {', '.join(RECORDS[table].key)} from {table}"
            for row in connection.execute(statement).fetchall():
                found[table, *map(str, row)] += 1
    return found


def difference(undisturbed: Rows, disturbed: Rows) -> list[tuple[str, ...]]:
    """A few of the rows that one of them lacks, or has less often than the other."""
    lost, added = undisturbed - disturbed, disturbed - undisturbed
    return [*(("lost", *row) for row in lost), *(("added", *row) for row in added)][:9]
