"""The problems of a run by their causes: each stands once, with the rows that failed because of it
and the questions and documents that it reached."""

from collections.abc import Iterator
from typing import Any

from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_COLUMNS = ("method", "memory", "document_id", "question_id", "detail")
Rows = list[dict[str, Any]]


def causes(connection: Any) -> Rows:
    """A row per stage and problem that is no consequence of another, those that reached most rows
    first: `num_rows` are its own, `num_after` those that have the problem `upstream` because of it;
    `documents` and `questions` are numbers, as in numbered_documents and numbered_questions."""
    parts = [_failed(table, columns) for table, columns in _tables(connection)]
    connection.execute(filled(_SQL["failed"], parts=" union all ".join(parts)))
    connection.execute(_SQL["own_causes"])
    return query(connection, _SQL["causes"])


def question_problems(connection: Any) -> Rows:
    """The problems of each listed question, by method."""
    parts = [
        f"select question_id, method, problem from {table} where problem is not null"
        for table, columns in _tables(connection)
        if {"question_id", "method"} <= columns
    ]
    if not parts:
        return []
    return query(connection, filled(_SQL["of_questions"], parts=" union ".join(parts)))


def _failed(table: str, columns: set[str]) -> str:
    """The rows of a table that have a problem, with all of _COLUMNS."""
    own = ", ".join(
        f"t.{name}" if name in columns else f"null::varchar as {name}" for name in _COLUMNS
    )
    step = "left join steps s using (step_id)" if "step_id" in columns else ""
    stage = "coalesce(s.stage, 'corpus')" if "step_id" in columns else "'corpus'"
    return (
        f"select {stage} as stage, '{table}' as table_name, {own}, t.problem"
        f" from {table} t {step} where t.problem is not null"
    )


def _tables(connection: Any) -> Iterator[tuple[str, set[str]]]:
    """The tables of the run whose rows may have a problem, with the names of their columns."""
    for row in query(connection, _SQL["tables"]):
        yield row["table_name"], set(row["columns"])
