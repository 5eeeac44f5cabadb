"""The problems of a run by their causes: each stands once, with the rows that failed because of it
and the questions and documents that it reached."""

from collections.abc import Iterator
from typing import Any

from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_COLUMNS = ("method", "memory", "document_id", "question_id", "detail")
_LOADED = ("documents", "questions")  # tables of the corpus
Rows = list[dict[str, Any]]


def causes(connection: Any, where: str = "true") -> Rows:
    """A row per stage and problem that is no consequence of another, those that reached most rows
    first: `num_rows` are its own, `num_after` those that have the problem `upstream` because of it,
    `num_details` its different details, of which `detail` is the first; `documents` and `questions`
    are the ids that it reached. `where`: SQL over document_id and question_id."""
    parts = [_failed(table, columns) for table, columns in _tables(connection)]
    if not parts:
        return []
    connection.execute(filled(_SQL["failed"], parts=" union all ".join(parts), where=where))
    connection.execute(_SQL["own_causes"])
    return query(connection, _SQL["causes"])


def question_problems(connection: Any) -> Rows:
    """A row per question, method and problem, by those three."""
    parts = [
        f"select question_id, method, problem from {table} where problem is not null"
        for table, columns in _tables(connection)
        if {"question_id", "method"} <= columns
    ]
    return query(connection, f"{' union '.join(parts)} order by all") if parts else []


def _failed(table: str, columns: set[str]) -> str:
    """The rows of a table that have a problem, with all of _COLUMNS."""
    own = ", ".join(
        f"t.{name}" if name in columns else f"null::varchar as {name}" for name in _COLUMNS
    )
    is_made = table not in _LOADED and "step_id" in columns
    step = "left join steps s using (step_id)" if is_made else ""
    stage = "coalesce(s.stage, 'corpus')" if is_made else "'corpus'"
    return (
        f"select {stage} as stage, '{table}' as table_name, {own}, t.problem"
        f" from {table} t {step} where t.problem is not null"
    )


def _tables(connection: Any) -> Iterator[tuple[str, set[str]]]:
    """The tables of the run whose rows may have a problem, with the names of their columns."""
    for row in query(connection, _SQL["tables"]):
        yield row["table_name"], set(row["columns"])
