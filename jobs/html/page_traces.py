"""The rows of documents and questions by stage, and every call with the prompt that was sent, for
the page of a run."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.html.run_page import with_line_numbers
from jobs.trace.reading_map import PAGE_SPANS, READINGS, lane, pages_lane
from jobs.trace.trace import Rows, Section, SentCalls, read_sections
from pipeline.core.rows import PLACE, Line, RawText, columns_line, lines_of
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)


@dataclass(frozen=True)
class Part:
    """A document and those of its questions that share a chunk."""

    document_id: str
    question_ids: tuple[str, ...]


class Traces:
    """Reads the parts of a run over one connection."""

    def __init__(self, connection: Any, stages: Sequence[str]) -> None:
        self._connection, self._sent = connection, SentCalls(connection, stages)
        self._upstream = {row["step_id"]: row["upstream"] for row in query(connection, _UPSTREAM)}

    def contents(self, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
        """The content of each part's chunk, in order; the rows of all parts are read at once."""
        ids = [question_id for part in parts for question_id in part.question_ids]
        self._connection.execute("set variable questions = ?", [ids])
        documents = [part.document_id for part in parts]
        self._connection.execute("set variable documents = ?", [documents])
        found = {row["document_id"]: row for row in query(self._connection, _SQL["documents"])}
        asked = {row["question_id"]: row for row in query(self._connection, _SQL["questions"])}
        page_spans, readings = self._grouped(PAGE_SPANS), self._grouped(READINGS)
        index = self._sections("document_id", documents)
        made = self._sections("question_id", ids)
        indexing, asking = self._sent.of_documents(documents), self._sent.of_questions(ids)
        for part in parts:
            own = found[part.document_id]
            document = {
                **own,
                "sections": index[part.document_id],
                "calls": _calls(indexing[part.document_id]),
                "page_lanes": {
                    row["memory"]: pages_lane(own["num_chars"], row["spans"])
                    for row in page_spans.get(part.document_id, ())
                },
            }
            questions = {
                name: {
                    **asked[name],
                    "sections": made[name],
                    "calls": _calls(asking[name]),
                    **_lanes(own["num_chars"], asked[name]["evidence"], readings.get(name, ())),
                }
                for name in part.question_ids
            }
            yield with_line_numbers({"document": document, "questions": questions})

    def _grouped(self, sql: str) -> dict[str, Rows]:
        found: dict[str, Rows] = defaultdict(list)
        for row in query(self._connection, sql):
            found[next(iter(row.values()))].append(row)
        return found

    def _sections(self, key: str, ids: Sequence[str]) -> dict[str, Rows]:
        """The sections of each document (key document_id) or question, in the order of stages."""
        sections = read_sections(self._connection, key, ids, as_drawn=True)
        return {name: [*map(self._section, own)] for name, own in sections.items()}

    def _section(self, section: Section) -> dict[str, Any]:
        """By column, or as the lines of `trace`."""
        record, rows = section.record, section.rows
        first, step_id = rows[0], rows[0]["step_id"]
        places: dict[str, Any] = {
            name: first[name] for name in ("memory", "method", "repeat") if name in first
        }
        shown: dict[str, Any]
        if record is not None and record.drawn:
            shown = {"rows": [{k: v for k, v in r.items() if k not in PLACE} for r in rows]}
        else:
            lines = lines_of(record.trace_all, rows) if record else map(columns_line, rows)
            shown = {"lines": [_line(line) for line in lines]}
        upstream = self._upstream[step_id]
        about = {"stage": section.stage, "table": section.table, "step_id": step_id}
        return {**about, "upstream": upstream, **places, **shown}


def _line(line: Line) -> Any:
    return {"lead": line.lead, "text": line.text} if isinstance(line, RawText) else line


def _calls(sent: Iterable[dict[str, Any]]) -> Rows:
    return [{k: v for k, v in call.items() if k not in _NOT_SHOWN} for call in sent]


def _lanes(num_chars: int, evidence: Rows | None, readings: Iterable[Any]) -> dict[str, Any]:
    return {
        "lanes": [
            {"method": row["method"], "repeat": row["repeat"],
             **asdict(lane(num_chars, row["spans"] or (), evidence or ()))}
            for row in readings
        ]
    }  # fmt: skip


_NOT_SHOWN = ("corpus", "unit", "input_sha", "document_id", "question_id")
_UPSTREAM = "select step_id, upstream from steps"
