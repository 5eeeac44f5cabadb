"""The answers of a run with their questions and documents, to which `where=` applies."""

from typing import Any

from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.sql_sandbox import expression

_SQL = sql_beside(__file__)


def answers(connection: Any, where: str | None, method: str | None = None) -> str:
    """A subquery: a row per answer of a method that begins with `method` for which the condition
    holds. Its columns are those of the view `predictions`, of `questions`, `title`, and
    `num_document_words`.

    Raises UsageError where `where` is no SQL expression.
    """
    condition = expression(connection, "where", where or "true")
    begins = (method or "").replace("'", "''")
    return f"({filled(_SQL['rows'], begins=begins, condition=condition)})"
