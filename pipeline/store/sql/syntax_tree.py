"""DuckDB's own syntax trees of SQL. To parse is not to bind: tables and columns need not exist."""

import json
from collections.abc import Iterator
from typing import Any


def syntax_tree(connection: Any, sql: str) -> dict[str, Any]:
    """The tree of a text of SELECT statements: `statements`, or `error` with its type and message.

    Raises RecursionError where it nests more deeply than Python's JSON reader can follow.
    """
    ((text,),) = connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchall()
    tree: dict[str, Any] = json.loads(text)
    return tree


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """The nodes, such as those of the type BASE_TABLE, wherever in a tree they are."""
    if isinstance(tree, dict):
        if isinstance(tree.get("type"), str):
            yield tree
        tree = [*tree.values()]
    if isinstance(tree, list):
        for inner in tree:
            yield from nodes(inner)
