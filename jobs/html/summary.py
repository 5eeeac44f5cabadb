"""The contents of a run's page before a question is opened: its report, the sizes of documents and
memories, problems, and a line per question and document."""

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from stop_words import get_stop_words

from jobs.frontier.frontier import Point, drawn_columns, points_of
from jobs.frontier.frontier_picture import frontier_svg
from jobs.report.memory_sizes import sizes
from jobs.report.names import Names, named
from jobs.report.render import BEST, notes, provenance_line
from jobs.report.report import Report
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)

_MOST_BINS = 30
_SHOWN_CHARS = 300  # of a question, in the list of all
Rows = list[dict[str, Any]]


def number_questions(connection: Any, rater: str | None, is_subset: bool) -> None:
    """Create the tables that the other functions here read: `numbered_questions`, those in the
    table `chosen`; `numbered_documents`, all, or for a subset those of its questions, with their
    numbers from 0; `valued`, a row per question, method and measure, the mean over repeats.
    Verdicts are those of `rater`."""
    asked = "semi join (from questions semi join chosen using (question_id)) using (document_id)"
    query(connection, filled(_SQL["documents"], where=asked if is_subset else ""))
    query(connection, filled(_SQL["questions"], shown_chars=str(_SHOWN_CHARS)))
    connection.execute("set variable rater = ?", [rater])
    query(connection, _SQL["valued"])  # once, as the view joins many tables


def summary(connection: Any, report: Report, names: Names | None) -> dict[str, Any]:
    """The content of the page's first chunk; questions and documents in the order of their
    numbers. Headings and memories are named by `names`; methods, by which the page finds their
    rows, are not: `method_names` has what is shown of them."""
    printed = named(report, names)
    found = replace(printed, rows=report.rows)
    shown = dataclasses.asdict(found)
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
        "sizes": _sizes(connection),
        "problems": _problems(connection),
        "measures": measures(connection),
        "documents": query(connection, "from numbered_documents order by number"),
        "questions": query(connection, _LISTED),
        "question_problems": _question_problems(connection),
        "stop_words": sorted(get_stop_words("en")),
    }


def _frontiers(report: Report) -> dict[str, str]:
    """By measure of answers, the picture of score against tokens read as SVG, in which a method
    leads to its questions; none where no method has tokens."""
    found = {}
    for column in drawn_columns(report):
        points = points_of(report, column)
        if any(point.place for point in points):
            found[column.measure] = frontier_svg(
                report.run, column.heading, points, link=_questions
            )
    return found


def _questions(point: Point) -> str:
    return "#" + urlencode({"view": "questions", "method": point.method})


def measures(connection: Any) -> list[str]:
    """The names of all measures that the run has values of."""
    return [row["measure"] for row in query(connection, _MEASURES)]


def values(connection: Any, measure: str) -> dict[str, list[float | None]]:
    """By method, the values of a measure for every question in the order of their numbers; None for
    a question without one."""
    connection.execute("set variable measure = ?", [measure])
    return {row["method"]: row["found"] for row in query(connection, _SQL["values"])}


def _sizes(connection: Any) -> Rows:
    """A histogram of every measure of documents and memories; `memory` None: of the documents."""
    found = []
    for row in sizes(connection):
        of = {name: row[name] for name in ("memory", "measure", "rows_of")}
        sample = row["values"] or []
        counts, edges = np.histogram(sample, bins=min(_MOST_BINS, max(1, len(set(sample)))))
        found.append({**of, "counts": counts.tolist(), "edges": edges.tolist()})
    return found


def _problems(connection: Any) -> Rows:
    """The number of rows of each table and problem, with an example of their detail."""
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
    return (
        query(connection, filled(_SQL["of_questions"], parts=" union ".join(parts)))
        if parts
        else []
    )


def _tables(connection: Any) -> Iterator[tuple[str, set[str]]]:
    """The tables of the run whose rows may have a problem, with the names of their columns."""
    for row in query(connection, _SQL["tables"]):
        yield row["table_name"], set(row["columns"])


_LISTED = "from numbered_questions order by number"
_MEASURES = "select distinct measure from valued order by measure"
_PROBLEMS_ORDER = "num_rows desc, stage, table_name, made_by, problem"
