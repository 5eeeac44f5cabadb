"""`gistmill schema` and the page docs/schema.md: every table and view, with the meanings of
columns.

Tables are read from the record classes: a class's docstring, the comments beside its fields. Views
are described by comments in their SQL.
"""

import inspect
import re
import tempfile
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pipeline.store.sql
from jobs.output.cells import Heading, Part, Table, Verbatim, on_one_line
from jobs.warehouse.ls import (
    Rows,
    conf_files,
    described,
    described_parts,
    field_comments,
    names_table,
    registered,
)
from pipeline.core import errors
from pipeline.core.errors import Problem, UsageError
from pipeline.core.registry import hint, load_plugins, plugin_folders
from pipeline.core.rows import RECORDS, STAMPS, Record, schema
from pipeline.core.settings import CONF
from pipeline.core.sql_files import sql_sections
from pipeline.store import connect
from pipeline.store.runs.planned_units import write_plan
from pipeline.store.runs.run_folder import RunFolder

_HEAD = """\
Made by `gistmill schema --markdown > docs/schema.md` from the record classes; do not edit. In
SQL, `gistmill sql` and `connect` show the rows of one run. Every view `all_NAME` has those of every
run, with the run's name in a first column `run`.

Words are counted by `stages/text/words.py`: in languages without spaces a word is a character.
Tokens are the engine's own. Positions count from 0, spans of characters are half-open, times are
UTC. A column of a view may be null where that of its tables may."""
_RUN = "empty"  # its name
_COLUMNS_OF_RUN = r"""
select table_name, column_name, data_type from duckdb_columns()
where not internal and not regexp_matches(table_name, '^(all|raw|no)_|_rows$')
order by table_name, column_index"""
_VIEW = re.compile(
    r"create (?:view|\{kind\}) (?:\{prefix\})?(\w+) as\s*\n((?:\s*--.*\n)*)", re.IGNORECASE
)
_MEANING = re.compile(r"^\s*-- (\w+): (.+)$", re.MULTILINE)
Views = dict[str, tuple[str, dict[str, str]]]
"""What each view is about, and the meanings of its own columns."""


@dataclass(frozen=True)
class SchemaColumn:
    """`type` is DuckDB's; `nullable` is None for columns of views."""

    name: str
    type: str
    nullable: bool | None
    meaning: str


@dataclass(frozen=True)
class SchemaTable:
    """A table, or a view (`is_view`). `key`: the columns that identify a row within its step."""

    name: str
    is_view: bool
    about: str
    key: tuple[str, ...]
    columns: tuple[SchemaColumn, ...]


Described = SchemaTable | Mapping[str, Any]
"""A table, what is registered, or a file of `conf`."""


@dataclass(frozen=True)
class Schema:
    """All tables and views, sorted by name, the problem codes with their meanings, everything else
    that plugins may add (ls.py), and the files of `conf`."""

    tables: tuple[SchemaTable, ...]
    problems: Mapping[str, str]
    registered: Mapping[str, Rows]
    files: Rows


def read_schema(plugins: str | None = None) -> Schema:
    """The schema of every warehouse, with the tables of plugins. Raises UsageError for a plugin
    that cannot be loaded."""
    confs = [CONF, *load_plugins(plugin_folders(plugins))]
    source = inspect.getsource(errors)
    told = dict(re.findall(r'^    "(\w+)",  # (.+)$', source, re.MULTILINE))
    views = _views()
    about, own = views["memories"]
    parts = [record.sql().get("memories", "") for record in RECORDS.values()]
    views["memories"] = about, {**own, **dict(m for part in parts for m in _MEANING.findall(part))}
    shared = {column: text for record in RECORDS.values() for column, text in _common(record)}
    tables = [
        _table(RECORDS[name], typed) if name in RECORDS else _view(name, typed, views, shared)
        for name, typed in _typed().items()
    ]
    tables.sort(key=lambda table: (table.is_view, table.name))
    problems = {code: told.get(code, "") for code in typing.get_args(Problem)}
    return Schema(tuple(tables), problems, registered(), conf_files(confs))


def _typed() -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        run = RunFolder(folder, _RUN)
        run.start({}, {}, True)
        plan = Path(folder) / "plan.parquet"
        write_plan(plan, [])
        run.plan([], plan)
        with connect(folder, _RUN) as connection:
            rows = connection.execute(_COLUMNS_OF_RUN).fetchall()
    tables = groupby(rows, itemgetter(0))
    return {table: {column: kind for _, column, kind in own} for table, own in tables}


def _common(record: Any) -> Iterator[tuple[str, str]]:
    """Stamps, and fields of the base classes."""
    yield from STAMPS.items()
    for base in record.__mro__:
        if base.__module__ == Record.__module__ and "table" not in base.__dict__:
            yield from field_comments(base).items()


def _table(record: type[Record], typed: Mapping[str, str]) -> SchemaTable:
    hints, comments = typing.get_type_hints(record), {**STAMPS, **field_comments(record)}
    nullable = {name for name, hint in hints.items() if type(None) in typing.get_args(hint)}
    columns = [
        SchemaColumn(name, typed[name], name in nullable, comments.get(name, ""))
        for name in schema(record).names
    ]
    about = on_one_line(record.__doc__ or "")
    return SchemaTable(record.table, False, about, record.key, tuple(columns))


def _view(
    name: str, typed: Mapping[str, str], views: Views, shared: Mapping[str, str]
) -> SchemaTable:
    """`shared`: the meanings of columns that the view's SQL does not explain."""
    about, own = views.get(name, ("", {}))
    meanings = {**shared, **own}
    columns = [SchemaColumn(c, kind, None, meanings.get(c, "")) for c, kind in typed.items()]
    return SchemaTable(name, True, about, (), tuple(columns))


def _views() -> Views:
    """By view, the comments after `create view NAME as`, on itself and on its columns."""
    made: Views = {}
    own = [sql_sections(file) for file in Path(pipeline.store.sql.__file__).parent.glob("*.sql")]
    of_records = [record.sql() for record in RECORDS.values()]
    for sql in (sql for sections in (*own, *of_records) for sql in sections.values()):
        if found := _VIEW.match(sql):
            lines = [line.strip().removeprefix("-- ") for line in found[2].splitlines()]
            about = [line for line in lines if not _MEANING.match(f"-- {line}")]
            made[found[1]] = " ".join(about), dict(_MEANING.findall(found[2]))
    return made


def named(found: Schema, name: str) -> list[Described]:
    """Everything with this name: a table or view (the name may also be that of its all_ view),
    registered ones, and files. Raises UsageError if there is nothing."""
    known = {table.name: table for table in found.tables}
    table = known.get(name.removeprefix("all_"))
    files = [{**row, "text": Path(row["file"]).read_text(encoding="utf-8")}
             for row in found.files if row["name"] == name]  # fmt: skip
    of_name: list[Described] = [*([table] if table else []), *described(name), *files]
    if of_name:
        return of_name
    others = [row["name"] for rows in found.registered.values() for row in rows]
    others += [row["name"] for row in found.files]
    near = hint(name, [*dict.fromkeys((*known, *others))])
    raise UsageError(f"{name}: no table, view or choice that gistmill ls lists; {near}")


def schema_parts(found: Schema) -> list[Part]:
    rows = [{"name": t.name, "is": _kind(t), "a row is": t.about} for t in found.tables]
    return [Table(rows, left=("is", "a row is")), _problems(found), names_table(found.registered)]


def named_parts(found: Sequence[Described]) -> Iterator[Part]:
    """The columns of a table, the text of a file, the settings of others."""
    for one in found:
        if isinstance(one, SchemaTable):
            yield f"{one.name}, a {_kind(one)}: {one.about}"
            yield _columns(one)
        elif "file" in one:
            yield f"{one['name']}, {one['is']} of {one['file']}:"
            yield Verbatim(one["text"])
        else:
            yield from described_parts(one)


def schema_page(found: Schema) -> Iterator[Part]:
    yield Heading("Tables, views and columns")
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
    for kind, rows in found.registered.items():
        yield Heading(kind.capitalize(), level=2)
        yield Table(rows, left=("about", "module"))


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
