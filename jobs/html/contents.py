"""What a run's page shows, as the content of its chunks: first the report, the causes of problems
and a line per question and document; then, per document and question, the rows of every stage and
every call with the prompt that was sent."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from jobs.export.frontier import drawn_columns, frontier_svg, points_of, tones_of
from jobs.html.run_page import with_line_numbers
from jobs.problems.causes import causes, question_problems
from jobs.report.columns import Names, group_of, named
from jobs.report.render import BEST, notes, provenance_line
from jobs.report.report import Report
from jobs.trace import trace
from jobs.trace.trace import Rows, Section
from pipeline.core.rows import PLACE, RawText, columns_line, lines_of
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_SHOWN_CHARS = 300  # of a question, in the list of all
_NOT_SHOWN = ("corpus", "unit", "input_sha", "document_id", "question_id")  # of a call
_OF_LISTED = """if(question_id is null,
  document_id in (select document_id from numbered_documents),
  question_id in (select question_id from numbered_questions))"""


def number_questions(connection: Any, rater: str | None, is_subset: bool) -> None:
    """Create the tables that the functions here read: `numbered_questions` of the table `chosen`;
    `numbered_documents`, all, or for a subset those of its questions; `valued`, a row per question,
    method and measure, the mean over repeats; verdicts are those of `rater`."""
    asked = "semi join (from questions semi join chosen using (question_id)) using (document_id)"
    query(connection, filled(_SQL["numbered_documents"], where=asked if is_subset else ""))
    query(connection, filled(_SQL["numbered_questions"], shown_chars=str(_SHOWN_CHARS)))
    connection.execute("set variable rater = ?", [rater])
    query(connection, _SQL["valued"])  # once, as the view joins many tables


def summary(
    connection: Any, report: Report, names: Names | None, is_subset: bool
) -> dict[str, Any]:
    """The content of the page's first chunk; for a subset only the causes that reached it. `names`
    renames headings and memories, but not methods, by which the page finds their rows."""
    printed = named(report, names)
    shown = replace(printed, rows=report.rows)
    documents = query(connection, "from numbered_documents order by number")
    questions = query(connection, "from numbered_questions order by number")
    document_numbers = {row["document_id"]: row["number"] for row in documents}
    question_numbers = {row["question_id"]: row["number"] for row in questions}

    def numbered(numbers: Mapping[str, int], names: Sequence[str] | None) -> list[int]:
        return sorted(numbers[name] for name in names or () if name in numbers)

    problems = [
        {"number": question_numbers[row["question_id"]], "method": row["method"],
         "problem": row["problem"]}
        for row in question_problems(connection)
        if row["question_id"] in question_numbers
    ]  # fmt: skip
    rows = tuple(row for row in report.rows if row.means or row.counts)
    methods = zip(report.rows, printed.rows, strict=True)
    return {
        "report": asdict(replace(shown, rows=rows)),
        "frontiers": _frontiers(shown),
        "method_names": {row.method: name.method for row, name in methods},
        "remarks": notes(report),
        "about_best": BEST,
        "foot": provenance_line(report),
        "tones": tones_of(row.method for row in report.rows),
        "groups": {column.measure: group_of(column, report) for column in report.columns},
        "causes": [
            {**cause, "documents": numbered(document_numbers, cause["documents"]),
             "questions": numbered(question_numbers, cause["questions"])}
            for cause in causes(connection, _OF_LISTED if is_subset else "true")
        ],
        "measures": [row["measure"] for row in query(connection, _SQL["measures"])],
        "documents": documents,
        "questions": questions,
        "question_problems": sorted(problems, key=lambda row: row["number"]),
    }  # fmt: skip


def _frontiers(report: Report) -> dict[str, str]:
    """By measure, a picture as SVG; left out if no method has tokens."""
    drawn = [(column, points_of(report, column)) for column in drawn_columns(report)]
    return {column.measure: frontier_svg(report.run, column.heading, points)
            for column, points in drawn if any(point.place for point in points)}  # fmt: skip


def values(connection: Any, measure: str) -> dict[str, list[float | None]]:
    """By method, a value per question in the order of their numbers; None if it has none."""
    connection.execute("set variable measure = ?", [measure])
    return {row["method"]: row["found"] for row in query(connection, _SQL["values"])}


@dataclass(frozen=True)
class Part:
    """A document and those of its questions that share a chunk."""

    document_id: str
    question_ids: tuple[str, ...]


class Traces:
    """Reads the parts of a run over one connection."""

    def __init__(self, connection: Any, stages: Sequence[str]) -> None:
        self._connection = connection
        trace.order_stages(connection, stages)
        steps = query(connection, "select step_id, upstream from steps")
        self._upstream = {row["step_id"]: row["upstream"] for row in steps}

    def contents(self, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
        """The content of each part's chunk, in order; the rows of all parts are read at once."""
        question_ids = [question_id for part in parts for question_id in part.question_ids]
        document_ids = [part.document_id for part in parts]
        self._connection.execute("set variable questions = ?", [question_ids])
        self._connection.execute("set variable documents = ?", [document_ids])
        documents = {key: rows[0] for key, rows in self._grouped(_SQL["documents"]).items()}
        questions = {key: rows[0] for key, rows in self._grouped(_SQL["questions"]).items()}
        page_spans, readings = self._grouped(trace.PAGE_SPANS), self._grouped(trace.READINGS)
        of_documents = self._sections("document_id", document_ids)
        of_questions = self._sections("question_id", question_ids)
        indexing = trace.sent_calls(self._connection, "document_id", document_ids)
        asking = trace.sent_calls(self._connection, "question_id", question_ids)
        for part in parts:
            name = part.document_id
            num_chars = documents[name]["num_chars"]
            document = {
                **documents[name],
                "sections": of_documents[name],
                "calls": _calls(indexing[name]),
                "page_lanes": {row["memory"]: trace.pages_lane(num_chars, row["spans"])
                               for row in page_spans[name]},
            }  # fmt: skip
            asked = {
                question_id: {
                    **questions[question_id],
                    "sections": of_questions[question_id],
                    "calls": _calls(asking[question_id]),
                    "lanes": [
                        {"method": row["method"], "repeat": row["repeat"],
                         **asdict(trace.lane(num_chars, row["spans"] or (),
                                       questions[question_id]["evidence"] or ()))}
                        for row in readings[question_id]
                    ],
                }
                for question_id in part.question_ids
            }  # fmt: skip
            yield with_line_numbers({"document": document, "questions": asked})

    def _grouped(self, sql: str) -> dict[str, Rows]:
        """Rows by their first column."""
        groups: dict[str, Rows] = defaultdict(list)
        for row in query(self._connection, sql):
            groups[next(iter(row.values()))].append(row)
        return groups

    def _sections(self, key: str, ids: Sequence[str]) -> dict[str, Rows]:
        """The sections of each document (key document_id) or question, in the order of stages."""
        sections = trace.read_sections(self._connection, key, ids, as_drawn=True)
        return {name: [*map(self._section, of_one)] for name, of_one in sections.items()}

    def _section(self, section: Section) -> dict[str, Any]:
        """By column, or as the lines of `trace`."""
        record, rows = section.record, section.rows
        step_id = rows[0]["step_id"]
        content: dict[str, Any]
        if record is not None and record.drawn:
            content = {"rows": [{k: v for k, v in r.items() if k not in PLACE} for r in rows]}
        else:
            lines = lines_of(record.trace_all, rows) if record else map(columns_line, rows)
            content = {"lines": [
                {"lead": line.lead, "text": line.text} if isinstance(line, RawText) else line
                for line in lines
            ]}  # fmt: skip
        return {
            "stage": section.stage,
            "table": section.table,
            "step_id": step_id,
            "upstream": self._upstream[step_id],
            **{name: rows[0][name] for name in ("memory", "method", "repeat") if name in rows[0]},
            **content,
        }


def _calls(sent: Rows) -> Rows:
    return [{k: v for k, v in call.items() if k not in _NOT_SHOWN} for call in sent]
