"""`gistmill schema`: every table and view, with what each column means.

Tables are read from the record classes: a class's docstring, the comments beside its fields. Views
are described by comments in their SQL."""

import ast
import inspect
import io
import re
import tempfile
import textwrap
import tokenize
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pipeline.store.sql
from jobs.output.cells import on_one_line
from pipeline.core import errors
from pipeline.core.arrow import schema
from pipeline.core.errors import Problem
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.rows import RECORDS, STAMPS, Record
from pipeline.core.sql_files import sql_sections
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder


def field_comments(cls: type) -> dict[str, str]:
    """The comment of every field, inherited ones included, by name: that on its own lines, else
    that right above it.

    Fields without a comment are left out, and all fields of a class whose source cannot be found.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins":
            found |= dict(_own_comments(base))
    return found


def _own_comments(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return
    (tree,) = ast.parse(source).body
    comments = _comments(source)
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            lines = [comments[line][1] for line in beside if line in comments]
            if text := " ".join(lines or _above(node.lineno, comments)):
                yield node.target.id, text


def _above(line: int, comments: dict[int, tuple[bool, str]]) -> list[str]:
    """The comment lines right above a line."""
    found: list[str] = []
    while (above := comments.get(line - len(found) - 1)) and above[0]:
        found.insert(0, above[1])
    return found


def _comments(source: str) -> dict[int, tuple[bool, str]]:
    """The comments of a source by line number: whether it is alone on its line, and its text."""
    return {
        token.start[0]: (not token.line[: token.start[1]].strip(), token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and "fmt:" not in token.string
    }


_RUN = "empty"  # its name
_VIEW = re.compile(r"create view (?:\{prefix\})?(\w+) as\s*\n((?:\s*--.*\n)*)", re.IGNORECASE)
_MEANING = re.compile(r"^\s*-- (\w+): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class SchemaColumn:
    """A column: its type in DuckDB, whether it may be null (None for columns of views), its
    meaning."""

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


@dataclass(frozen=True)
class Schema:
    """All tables and views in order of their names, and the problem codes with their meanings."""

    tables: tuple[SchemaTable, ...]
    problems: Mapping[str, str]


def read_schema(plugins: str | None = None) -> Schema:
    """The schema of every warehouse, with the tables of plugins. Raises UsageError for a plugin
    that cannot be loaded."""
    load_plugins(plugin_folders(plugins))
    typed = _typed()
    named = {column: text for record in RECORDS.values() for column, text in _common(record)}
    views = _views()
    about, own = views["memories"]
    parts = [record.sql().get("memories", "") for record in RECORDS.values()]
    views["memories"] = about, {**own, **dict(m for part in parts for m in _MEANING.findall(part))}
    tables = [_table(record, typed[name]) for name, record in RECORDS.items()]
    others = [name for name in typed if name not in RECORDS]
    made = [_view(name, typed[name], views.get(name, ("", {})), named) for name in others]
    found = sorted([*tables, *made], key=lambda table: (table.is_view, table.name))
    return Schema(tuple(found), _problems())


def _typed() -> dict[str, dict[str, str]]:
    """The columns of every table and view of a run, with their types in DuckDB."""
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        run = RunFolder(folder, _RUN)
        run.start({}, {}, True)
        run.plan([], [])
        with connect(folder, _RUN) as connection:
            rows = connection.execute(
                "select table_name, column_name, data_type from duckdb_columns() "
                "where not internal order by table_name, column_index"
            ).fetchall()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        if not table.startswith(("all_", "raw_", "no_")) and not table.endswith("_rows"):
            found.setdefault(table, {})[column] = kind
    return found


def _common(record: Any) -> Iterator[tuple[str, str]]:
    """The columns that mean the same wherever they are: stamps, and fields of the base classes."""
    yield from STAMPS.items()
    for base in record.__mro__:
        if base.__module__ == Record.__module__ and "table" not in base.__dict__:
            yield from field_comments(base).items()


def _table(record: type[Record], typed: Mapping[str, str]) -> SchemaTable:
    hints, comments = typing.get_type_hints(record), {**STAMPS, **field_comments(record)}
    columns = [
        SchemaColumn(
            name, typed[name], name in hints and _nullable(hints[name]), comments.get(name, "")
        )
        for name in schema(record).names
    ]
    about = on_one_line(record.__doc__ or "")
    return SchemaTable(record.table, False, about, record.key, tuple(columns))


def _nullable(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _view(
    name: str,
    typed: Mapping[str, str],
    described: tuple[str, Mapping[str, str]],
    named: Mapping[str, str],
) -> SchemaTable:
    about, own = described
    columns = [
        SchemaColumn(column, kind, None, own.get(column) or named.get(column, ""))
        for column, kind in typed.items()
    ]
    return SchemaTable(name, True, about, (), tuple(columns))


def _views() -> dict[str, tuple[str, dict[str, str]]]:
    """Every view with its comment after `create view NAME as`, and those on its columns."""
    made = {}
    own = [sql_sections(file) for file in Path(pipeline.store.sql.__file__).parent.glob("*.sql")]
    of_records = [record.sql() for record in RECORDS.values()]
    for sql in (sql for sections in (*own, *of_records) for sql in sections.values()):
        if found := _VIEW.match(sql):
            lines = [line.strip().removeprefix("-- ") for line in found[2].splitlines()]
            about = [line for line in lines if not _MEANING.match(f"-- {line}")]
            made[found[1]] = " ".join(about), dict(_MEANING.findall(found[2]))
    return made


def _problems() -> dict[str, str]:
    """The problem codes, with the comments beside them."""
    source = inspect.getsource(errors)
    told = dict(re.findall(r'^    "(\w+)",  # (.+)$', source, re.MULTILINE))
    return {code: told.get(code, "") for code in typing.get_args(Problem)}
