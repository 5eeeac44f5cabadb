"""Print the schema: in tables for a terminal, or as the Markdown page docs/schema.md."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.config.options import KEYS, read_options
from jobs.output.print_tables import print_json, print_line, print_table
from jobs.warehouse.schema import Schema, SchemaTable, read_schema
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint

_HEAD = """# Tables, views and columns

Made by `gistmill schema --markdown > docs/schema.md` from the record classes; do not edit. In
SQL, `gistmill sql` and `connect` show the rows of one run. Every view `all_NAME` has those of every
run, with the run's name in a first column `run`.

Words are counted by `stages/text/words.py`: in languages without spaces a word is a character.
Tokens are the engine's own. Positions count from 0, spans of characters are half-open, times are
UTC. A column of a view may be null where that of its tables may.
"""


def show_schema(table: str | None, words: Sequence[str], as_page: bool, as_json: bool) -> None:
    """Print all tables and views, or the columns of one. `words`: plugins=.

    Raises UsageError for a table that does not exist.
    """
    if table is not None and "=" in table:
        words, table = [table, *words], None
    found = read_schema(read_options(words, KEYS["schema"]).plugins)
    if as_page:
        print_line(schema_page(found))
    elif table is not None:
        _show_table(_named(found, table), as_json)
    elif as_json:
        print_json(dataclasses.asdict(found))
    else:
        rows: list[dict[str, Any]] = [
            {"name": one.name, "is": _kind(one), "a row is": one.about} for one in found.tables
        ]
        print_table(rows, left=tuple(rows[0]))
        print_line()
        codes = [{"problem": code, "meaning": text} for code, text in found.problems.items()]
        print_table(codes, left=("problem", "meaning"))


def schema_page(found: Schema) -> str:
    """The Markdown page."""
    return "\n".join([_HEAD, *_sections(found), *_problems(found)])


def _named(found: Schema, name: str) -> SchemaTable:
    known = {table.name: table for table in found.tables}
    name_of_run = name.removeprefix("all_")
    if name_of_run in known:
        return known[name_of_run]
    raise UsageError(f"{name}: no such table or view; {hint(name, [*known])}")


def _show_table(table: SchemaTable, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(table))
        return
    print_line(f"{table.name}, a {_kind(table)}: {table.about}\n")
    rows = [_cells(column) for column in table.columns]
    print_table(rows, left=tuple(rows[0]))


def _kind(table: SchemaTable) -> str:
    return "view" if table.is_view else "table"


def _cells(column: Any) -> dict[str, Any]:
    kind = f"{column.type}, null" if column.nullable else column.type
    return {"column": column.name, "type": kind, "meaning": column.meaning}


def _sections(found: Schema) -> Iterator[str]:
    for is_view, title in ((False, "## Tables"), (True, "## Views")):
        yield title
        yield ""
        for table in found.tables:
            if table.is_view == is_view:
                yield from _section(table)


def _section(table: SchemaTable) -> Iterator[str]:
    key = f" A row's key in its step: {', '.join(table.key)}." if table.key else ""
    yield f"### {table.name}\n\n{_escaped(table.about)}{key}\n"
    yield "| column | type | meaning |\n|---|---|---|"
    for cells in map(_cells, table.columns):
        yield f"| {cells['column']} | {cells['type']} | {_escaped(cells['meaning'])} |"
    yield ""


def _problems(found: Schema) -> Iterator[str]:
    yield "## Problem codes\n\n| problem | meaning |\n|---|---|"
    yield from (f"| {code} | {_escaped(text)} |" for code, text in found.problems.items())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
