"""The parts of a printed schema, and of the page docs/schema.md."""

from collections.abc import Iterator

from jobs.output.cells import Heading, Part, Table
from jobs.warehouse.schema import Schema, SchemaTable
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint

_TITLE = "Tables, views and columns"
_HEAD = """\
Made by `gistmill schema --markdown > docs/schema.md` from the record classes; do not edit. In
SQL, `gistmill sql` and `connect` show the rows of one run. Every view `all_NAME` has those of every
run, with the run's name in a first column `run`.

Words are counted by `stages/text/words.py`: in languages without spaces a word is a character.
Tokens are the engine's own. Positions count from 0, spans of characters are half-open, times are
UTC. A column of a view may be null where that of its tables may."""


def table_named(found: Schema, name: str) -> SchemaTable:
    """A table or view, by its name or that of its rows of all runs. Raises UsageError."""
    known = {table.name: table for table in found.tables}
    name_of_run = name.removeprefix("all_")
    if name_of_run in known:
        return known[name_of_run]
    raise UsageError(f"{name}: no such table or view; {hint(name, [*known])}")


def schema_parts(found: Schema) -> list[Part]:
    """All tables and views, and the problem codes."""
    rows = [{"name": t.name, "is": _kind(t), "a row is": t.about} for t in found.tables]
    return [Table(rows, left=("is", "a row is")), _problems(found)]


def table_parts(table: SchemaTable) -> list[Part]:
    """The columns of a table."""
    return [f"{table.name}, a {_kind(table)}: {table.about}", _columns(table)]


def schema_page(found: Schema) -> Iterator[Part]:
    """The parts of the page: all tables, views and problem codes."""
    yield Heading(_TITLE)
    yield _HEAD
    for is_view, title in ((False, "Tables"), (True, "Views")):
        yield Heading(title, level=2)
        for table in (table for table in found.tables if table.is_view == is_view):
            key = f" A row's key in its step: {', '.join(table.key)}." if table.key else ""
            yield Heading(table.name, level=3)
            yield table.about + key
            yield _columns(table)
    yield Heading("Problem codes", level=2)
    yield _problems(found)


def _kind(table: SchemaTable) -> str:
    return "view" if table.is_view else "table"


def _columns(table: SchemaTable) -> Table:
    rows = [
        {
            "column": column.name,
            "type": f"{column.type}, null" if column.nullable else column.type,
            "meaning": column.meaning,
        }
        for column in table.columns
    ]
    return Table(rows, left=("type", "meaning"))


def _problems(found: Schema) -> Table:
    rows = [{"problem": code, "meaning": text} for code, text in found.problems.items()]
    return Table(rows, left=("meaning",))
