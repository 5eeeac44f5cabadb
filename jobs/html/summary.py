"""What the page of a run shows before a question is opened: its report, the sizes of documents and
memories, problems, and a line per question and document."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from stop_words import get_stop_words

from jobs.corpus import samples
from jobs.render import foot, notes
from jobs.report import Report
from pipeline.store.views import query

_MOST_BINS = 30
_SHOWN_CHARS = 300  # of a question, in the list of all
Rows = list[dict[str, Any]]


def number_questions(connection: Any, rater: str | None, is_subset: bool) -> None:
    """Create the tables that the others here read: `numbered_questions`, those in the table
    `chosen`, and `numbered_documents`, all, of a subset those of its questions, with their numbers
    from 0; `valued`, a row per question, method and measure, the mean over repeats. Verdicts are
    those of `rater`."""
    asked = "semi join (from questions semi join chosen using (question_id)) using (document_id)"
    query(connection, f"{_DOCUMENTS} {asked if is_subset else ''}")
    query(connection, _QUESTIONS)
    connection.execute("set variable rater = ?", [rater])
    query(connection, _VALUED)  # once, as the view joins many tables


def summary(connection: Any, report: Report) -> dict[str, Any]:
    """The content of the page's first chunk; questions and documents in the order of their
    numbers."""
    shown = dataclasses.asdict(report)
    shown["rows"] = [row for row in shown["rows"] if row["means"] or row["counts"]]
    return {
        "report": shown,
        "remarks": notes(report),
        "foot": foot(report),
        "sizes": _sizes(connection),
        "problems": _problems(connection),
        "measures": measures(connection),
        "documents": query(connection, "from numbered_documents order by number"),
        "questions": query(connection, _LISTED),
        "question_problems": _question_problems(connection),
        "stop_words": sorted(get_stop_words("en")),
    }


def measures(connection: Any) -> list[str]:
    """The names of all measures that the run has values of."""
    return [row["measure"] for row in query(connection, _MEASURES)]


def values(connection: Any, measure: str) -> dict[str, list[float | None]]:
    """By method, a measure's value of every question in the order of their numbers; null without
    one."""
    connection.execute("set variable measure = ?", [measure])
    return {row["method"]: row["found"] for row in query(connection, _VALUES)}


def _sizes(connection: Any) -> Rows:
    """A histogram of every measure of documents and memories; null is the documents' memory."""
    found = []
    for of, sample in samples(connection):
        counts, edges = np.histogram(sample, bins=min(_MOST_BINS, max(1, len(set(sample)))))
        found.append({**of, "counts": counts.tolist(), "edges": edges.tolist()})
    return found


def _problems(connection: Any) -> Rows:
    """How many rows of each table have which problem, with an example of their detail."""
    parts = [
        f"""select s.stage, '{table}' as table_name, {_made_by(columns)} as made_by, t.problem,
        count(*) as num_rows, {"min(t.detail)" if "detail" in columns else "null"} as detail
        from {table} t left join steps s using (step_id) where t.problem is not null group by all"""
        for table, columns in _tables(connection)
    ]
    return query(connection, f"{' union all '.join(parts)} order by {_PROBLEMS_ORDER}")


def _made_by(columns: set[str]) -> str:
    name = next((name for name in ("method", "memory") if name in columns), None)
    return f"t.{name}" if name else "null::varchar"


def _question_problems(connection: Any) -> Rows:
    """The problems of each listed question, by method."""
    parts = [
        f"select question_id, method, problem from {table} where problem is not null"
        for table, columns in _tables(connection)
        if {"question_id", "method"} <= columns
    ]
    return query(connection, _OF_QUESTIONS.format(parts=" union ".join(parts))) if parts else []


def _tables(connection: Any) -> Iterator[tuple[str, set[str]]]:
    """The tables of the run whose rows may have a problem, with the names of their columns."""
    for row in query(connection, _TABLES):
        yield row["table_name"], set(row["columns"])


_DOCUMENTS = """
create temp table numbered_documents as
select (row_number() over (order by document_id) - 1)::int as number, document_id, title, num_words,
  problem, skipped
from documents"""
_QUESTIONS = f"""
create temp table numbered_questions as
select (row_number() over (order by d.number, question_id) - 1)::int as number, question_id,
  d.number as document, question_type,
  left(question, {_SHOWN_CHARS}) || if(length(question) > {_SHOWN_CHARS}, ' …', '') as question
from questions semi join chosen using (question_id)
join numbered_documents d using (document_id)"""
_LISTED = "from numbered_questions order by number"
_VALUED = """
create temp table valued as
select measure, method, number, round(avg(value), 2) as value
from measures join numbered_questions using (question_id)
where value is not null and (rater is null or rater = getvariable('rater')) group by all"""
_MEASURES = "select distinct measure from valued order by measure"
_VALUES = """
with found as (from valued where measure = getvariable('measure'))
select method, list(value order by number) as found
from (select distinct method from found) cross join numbered_questions
left join found using (method, number) group by method order by method"""
_PROBLEMS_ORDER = "num_rows desc, stage, table_name, made_by, problem"
_OF_QUESTIONS = """
select number, method, problem from ({parts}) join numbered_questions using (question_id)
order by all"""
_TABLES = """
select table_name, list(column_name) as columns from information_schema.columns
where table_name in (select table_name from shards union values ('documents'), ('questions'))
  and table_name <> 'calls'
group by table_name order by table_name"""
