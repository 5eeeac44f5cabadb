"""Chooses the questions, methods and columns of a report, and the rater whose verdicts it shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import expression, query
from pipeline.work.stage import Column

_SQL = sql_beside(__file__)
FALLBACK = Column(  # of the view `fallbacks`
    "fallback", "fallback %", 90, has_interval=False,
    about="share of the page ends of the method's memory that were chosen without a usable reply",
)  # fmt: skip
_RATERS = "select distinct rater from raters order by rater"
_KINDS = """
select bool_or(len(options) = 0 and len("references") > 0) as free,
  bool_or(len(options) > 0) as choice from questions"""


def create_chosen_table(connection: Any, options: ReadOptions) -> None:
    """Create the table `chosen` of the report's questions; `by_value` is a question's group, and
    the numbers `question_place` and `document_place` replace longer ids beside values and sums.

    Raises UsageError if `where` leaves no question.
    """
    documents = """(select document_id, title, num_words as num_document_words,
        row_number() over (order by document_id)::int as document_place from documents)"""
    source = f"""(select q.*, title, num_document_words, document_place
        from questions q join {documents} using (document_id) where q.problem is null)"""
    group = expression("by", options.by or "null")
    condition = expression("where", options.where or "true")
    query(  # the line breaks end a comment at the end of an expression
        connection,
        f"""create temp table chosen as select question_id, document_place,
        row_number() over ()::int as question_place,
        (\n{group}\n)::varchar as by_value from {source} where (\n{condition}\n)""",
    )
    if options.where and not query(connection, "select 1 as one from chosen limit 1"):
        raise UsageError(f"where={condition}: leaves no question of the run")


def chosen_rater(connection: Any, wanted: str | None) -> str | None:
    """The rater whose verdicts are shown: the only one whose name starts with `wanted`; None
    without raters. Raises UsageError if there are several, or none with that prefix."""
    raters = [row["rater"] for row in query(connection, _RATERS)]
    found = [rater for rater in raters if wanted is None or rater.startswith(wanted)]
    if wanted is not None and not found:
        known = ", ".join(raters) or "no model that rates"
        raise UsageError(f"rater={wanted}: the run has {known}")
    if len(found) > 1:
        raise UsageError(f"the run has several raters; add rater=one of {', '.join(found)}")
    return found[0] if found else None


def chosen_methods(methods: Sequence[str], begins: str | None) -> list[str]:
    """The methods whose names begin with `begins`. Raises UsageError if there are none."""
    found = [method for method in methods if method.startswith(begins or "")]
    if begins and not found:
        near = nearest(begins, sorted(methods), 5)
        raise UsageError(f"method={begins}: not in the run; nearest: {near}")
    return found


def shown_columns(
    connection: Any, found: Mapping[str, Any]
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns for the kinds of questions that the run has; and the names of those that measure
    answers, which are specific to a kind of question and come first."""
    kinds = query(connection, _KINDS)[0]
    own = [Column(**column) for kind in ("free", "choice") if kinds[kind]
           for column in found[kind]]  # fmt: skip
    of_any = [Column(**column) for column in found["any"]]
    measures = {column.measure for column in own}
    columns = {c.measure: c for c in sorted(
        [*own, *of_any, FALLBACK], key=lambda c: (c.measure not in measures, c.place))}  # fmt: skip
    return tuple(columns.values()), tuple(name for name in columns if name in measures)


def answers(connection: Any, where: str | None, method: str | None = None) -> str:
    """A subquery with a row per answer that satisfies `where`, of the methods that begin with
    `method`. Its columns are those of the view `predictions`, of `questions`, `title`, and
    `num_document_words`.

    Raises UsageError if `where` is no SQL expression.
    """
    condition = expression("where", where or "true")
    begins = (method or "").replace("'", "''")
    return f"({filled(_SQL['rows'], begins=begins, condition=condition)})"
