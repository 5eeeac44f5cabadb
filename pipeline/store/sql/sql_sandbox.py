"""Restrict a user's SQL to reading the views of a connection.

DuckDB itself keeps files, settings and extensions locked (`lock`); its own parser shows what kind
of statement a text is (`only_select`, `expression`). Works with DuckDB 1.5 and 2.0.
"""

from collections.abc import Iterable
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.store.sql.connection import errors_of
from pipeline.store.sql.run_views import text
from pipeline.store.sql.syntax_tree import nodes, syntax_tree

# Table functions that read no file, change no setting and hide no statement in a text.
_TABLE_FUNCTIONS = {
    "unnest", "range", "generate_series", "json_each", "json_tree",
    "duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_views",
}  # fmt: skip


def lock(connection: Any, files: Iterable[str]) -> None:
    """Let a connection open `files` and no others, for good: no other file is read or written,
    nothing is attached or installed, no setting changed, no variable of this process scanned."""
    connection.execute(f"set allowed_paths = [{', '.join(map(text, files))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set python_enable_replacements = false")
    connection.execute("set lock_configuration = true")


def only_select(connection: Any, statement: str) -> str:
    """The statement, if it is a single SELECT (FROM, VALUES, DESCRIBE ... are) over the views.

    Raises UsageError for any other, and for other table functions: in DuckDB 1.5 enable_profiling()
    writes a file in spite of the locks.
    """
    if len(_parsed(connection, statement)) != 1:
        raise UsageError(_NO_SELECT)
    return statement


def expression(connection: Any, key: str, text: str) -> str:
    """The text, if it is a single SQL expression. Raises UsageError naming the `key`."""
    empty, found = (_parsed(connection, f"select {part}\n") for part in ("1", text))
    items = found[0]["node"].pop("select_list", []) if len(found) == 1 else []
    empty[0]["node"].pop("select_list")
    # Nothing but its one item may differ from `select 1`: no from, where, union, order by ...
    if len(items) != 1 or found != empty:
        raise UsageError(f"{key}={text}: not a single SQL expression over the questions")
    return text


_NO_SELECT = "sql: only one SELECT over the views is allowed; --unsafe allows any statement"


def _parsed(connection: Any, statement: str) -> list[dict[str, Any]]:
    """DuckDB's syntax trees of the SELECT statements in a text; empty where it has none."""
    with errors_of(connection):
        connection.extract_statements(statement)  # its errors show the place
    try:
        tree = syntax_tree(connection, statement)
        functions = [node["function"]["function_name"] for node in nodes(tree, "TABLE_FUNCTION")]
    except RecursionError:
        raise UsageError("sql: nested too deeply; use fewer levels, or add --unsafe") from None
    if tree["error"]:  # a statement of another kind
        raise UsageError(_NO_SELECT)
    for name in functions:
        if name not in _TABLE_FUNCTIONS:
            raise UsageError(f"sql: {name}() is not allowed; read the views, or add --unsafe")
    return list(tree["statements"])
