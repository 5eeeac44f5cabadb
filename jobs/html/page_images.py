"""Pages of PDFs that stand as images beside the text of a run's documents: which there are, and
which of them were used."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)


def page_starts(metadata: str) -> list[int]:
    """Where in a document's text the pages of its PDF begin; of others none."""
    found = json.loads(metadata).get("page_starts", [])
    is_known = isinstance(found, list) and all(isinstance(start, int) for start in found)
    return found if is_known else []


def pictured_text(connection: Any, number: int, index: int) -> str | None:
    """The text of a document by its number; None unless its PDF has a page of that index."""
    connection.execute("set variable number = ?", [number])
    for row in query(connection, _SQL["text"]):
        if index < len(page_starts(row["metadata"])):
            return str(row["text"])
    return None


def used_pages(connection: Any) -> Iterator[tuple[int, int]]:
    """The pages of PDFs, by the numbers of their documents, that have gold evidence, then those
    that a method read."""
    starts = {row["number"]: page_starts(row["metadata"]) for row in query(connection, _SQL["of"])}
    found: dict[tuple[int, int], None] = {}
    for row in query(connection, _SQL["used"]):
        own = starts[row["number"]]
        first = bisect_right(own, row["start_char"]) - 1
        last = bisect_left(own, row["end_char"])
        found |= dict.fromkeys((row["number"], page) for page in range(max(first, 0), last))
    yield from found
