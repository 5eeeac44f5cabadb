"""The part of a run's page that is there before a question is opened: its report, the causes of
problems, and a line per question and document."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from jobs.export.frontier import drawn_columns, frontier_svg, points_of, tones_of
from jobs.problems.causes import causes, question_problems
from jobs.report.columns import Names, group_of, named
from jobs.report.render import BEST, notes, provenance_line
from jobs.report.report import Report
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)

_SHOWN_CHARS = 300  # of a question, in the list of all
Rows = list[dict[str, Any]]


def number_questions(connection: Any, rater: str | None, is_subset: bool) -> None:
    """Create the tables that the functions here read: `numbered_questions`, the questions in the
    table `chosen`; `numbered_documents`, all, or for a subset those of its questions, with numbers
    from 0; `valued`, a row per question, method and measure, the mean over repeats.

    Verdicts are those of `rater`.
    """
    asked = "semi join (from questions semi join chosen using (question_id)) using (document_id)"
    query(connection, filled(_SQL["documents"], where=asked if is_subset else ""))
    query(connection, filled(_SQL["questions"], shown_chars=str(_SHOWN_CHARS)))
    connection.execute("set variable rater = ?", [rater])
    query(connection, _SQL["valued"])  # once, as the view joins many tables


def summary(
    connection: Any, report: Report, names: Names | None, is_subset: bool
) -> dict[str, Any]:
    """The content of the page's first chunk; questions and documents in the order of their numbers,
    and for a subset the causes that reached it.

    `names` renames headings and memories, but not methods, by which the page finds their rows:
    `method_names` has their printed names.
    """
    printed = named(report, names)
    found = replace(printed, rows=report.rows)
    shown = dataclasses.asdict(found)
    documents = query(connection, "from numbered_documents order by number")
    questions = query(connection, "from numbered_questions order by number")
    shown["rows"] = [row for row in shown["rows"] if row["means"] or row["counts"]]
    return {
        "report": shown,
        "frontiers": _frontiers(found),
        "method_names": {
            row.method: name.method for row, name in zip(report.rows, printed.rows, strict=True)
        },
        "remarks": notes(report),
        "about_best": BEST,
        "foot": provenance_line(report),
        "tones": tones_of(row.method for row in report.rows),
        "groups": {column.measure: group_of(column, report) for column in report.columns},
        "causes": _causes(connection, documents, questions, _OF_LISTED if is_subset else "true"),
        "measures": measures(connection),
        "documents": documents,
        "questions": questions,
        "question_problems": _problems(connection, questions),
    }


def _causes(connection: Any, documents: Rows, questions: Rows, where: str) -> Rows:
    """With the numbers of listed documents and questions; missing documents have none."""
    numbers = {row["document_id"]: row["number"] for row in documents}
    asked = {row["question_id"]: row["number"] for row in questions}
    return [
        {
            **cause,
            "documents": _numbered(cause["documents"] or (), numbers),
            "questions": _numbered(cause["questions"], asked),
        }
        for cause in causes(connection, where)
    ]


def _numbered(names: Iterable[str], numbers: Mapping[str, int]) -> list[int]:
    return sorted(numbers[name] for name in names if name in numbers)


def _problems(connection: Any, questions: Rows) -> Rows:
    asked = {row["question_id"]: row["number"] for row in questions}
    found = [
        {"number": asked[row["question_id"]], "method": row["method"], "problem": row["problem"]}
        for row in question_problems(connection)
        if row["question_id"] in asked
    ]
    return sorted(found, key=lambda row: row["number"])


def _frontiers(report: Report) -> dict[str, str]:
    """By measure, a picture as SVG; left out if no method has tokens."""
    found = {}
    for column in drawn_columns(report):
        points = points_of(report, column)
        if any(point.place for point in points):
            found[column.measure] = frontier_svg(report.run, column.heading, points)
    return found


def measures(connection: Any) -> list[str]:
    return [row["measure"] for row in query(connection, _MEASURES)]


def values(connection: Any, measure: str) -> dict[str, list[float | None]]:
    """By method, a value per question in the order of their numbers; None if it has none."""
    connection.execute("set variable measure = ?", [measure])
    return {row["method"]: row["found"] for row in query(connection, _SQL["values"])}


_OF_LISTED = """if(question_id is null,
  document_id in (select document_id from numbered_documents),
  question_id in (select question_id from numbered_questions))"""
_MEASURES = "select distinct measure from valued order by measure"
