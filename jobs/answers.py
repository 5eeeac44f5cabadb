"""The answers of a run with their questions and documents, which `where=` is about."""

from typing import Any

from pipeline.store.locks import expression


def answers(connection: Any, where: str | None, method: str | None = None) -> str:
    """A subquery: a row per answer of a method that begins with `method` for which the condition
    holds. Its columns are those of the view `predictions`, of `questions`, `title`, and
    `num_document_words`.

    Raises UsageError where `where` is no SQL expression.
    """
    condition = expression(connection, "where", where or "true")
    begins = (method or "").replace("'", "''")
    return f"""(select * from (
      select p.*, q.* exclude (document_id, question_id, problem, detail),
        d.title, d.num_words as num_document_words
      from predictions p join questions q using (document_id, question_id)
      join documents d using (document_id))
    where starts_with(method, '{begins}') and ({condition}
    ))"""
