"""Collect all rows about one question: those of every method, and those of the memories that the
methods read. Beside them the calls, with the messages sent, and the reading map of a question."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.rows import RECORDS, Record, is_vector
from pipeline.core.sql_files import sql_beside
from pipeline.store.shards.layout import SHARED
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
)
PAGE_SPANS, READINGS = _SQL["page_spans"], _SQL["readings"]
"""Queries about the documents and questions in the variables `documents` and `questions`."""
_LEAST = 400  # parts of a map's axis; a shorter span is drawn as one, to be visible
Rows = list[dict[str, Any]]
Spans = Iterable[Mapping[str, Any]]
"""Rows with start_char and end_char, half-open, characters of the document's text."""
_Joined = list[tuple[int, int]]


@dataclass(frozen=True)
class Section:
    """The rows that a step wrote for one question, or for its document. `record` is None for a
    table of a plugin that is not loaded."""

    stage: str
    table: str
    record: type[Record] | None
    rows: Rows


@dataclass(frozen=True)
class Trace:
    """Memories by name, methods by name and repeat; sections in the order of the stages."""

    question: dict[str, Any]
    memories: dict[str, list[Section]]
    methods: dict[tuple[str, int], list[Section]]
    calls: Rows  # of the document's memories and the question; none if not asked for
    left_out: Rows  # damaged files, and why

    def memory_calls(self, memory: str) -> Rows:
        """The calls that made a memory."""
        return [call for call in self.calls if (call["method"], call["memory"]) == (None, memory)]

    def method_calls(self, method: str, repeat: int) -> Rows:
        """The calls that a method and its raters made for the question."""
        return [c for c in self.calls if (c["method"], c["repeat"]) == (method, repeat)]

    def as_json(self) -> dict[str, Any]:
        """Rows by table, as JSON."""
        return {
            "question": self.question,
            "memories": {name: _by_table(sections, self.memory_calls(name))
                         for name, sections in self.memories.items()},
            "methods": [{"method": method, "repeat": repeat,
                         **_by_table(sections, self.method_calls(method, repeat))}
                        for (method, repeat), sections in self.methods.items()],
            "left_out": self.left_out,
        }  # fmt: skip


def _by_table(sections: Iterable[Section], calls: Rows) -> dict[str, Rows]:
    tables: dict[str, Rows] = {}
    for section in sections:
        tables.setdefault(section.table, []).extend(section.rows)
    return {**tables, **({"calls": calls} if calls else {})}


def trace(options: ReadOptions, question_id: str, with_calls: bool = False) -> Trace:
    """The trace of a question, by the methods whose name starts with `options.method`; `with_calls`
    adds every call, as it was sent. Raises UsageError for an unknown question or method."""
    with options.opened() as (folder, connection):
        order_stages(connection, folder.report_facts()["stages"])
        question_id = stored_id(connection, "question", question_id)
        connection.execute("set variable question = ?", [question_id])
        (question,) = query(connection, _SQL["question"])
        document_id = question["document_id"]
        methods: dict[tuple[str, int], list[Section]] = defaultdict(list)
        for section in read_sections(connection, "question_id", [question_id])[question_id]:
            methods[section.rows[0]["method"], section.rows[0]["repeat"]].append(section)
        prefix = options.method
        methods = {k: methods[k] for k in sorted(methods) if k[0].startswith(prefix or "")}
        if prefix is not None and not methods:
            raise UsageError(f"method={prefix}: no such method has answered {question_id}")
        connection.execute("set variable methods = ?", [[method for method, _ in methods]])
        of_document = read_sections(connection, "document_id", [document_id])[document_id]
        names = [SHARED, *(row["memory"] for row in query(connection, _SQL["rests_on"]))]
        memories = {name: [s for s in of_document if s.rows[0]["memory"] == name] for name in names}
        calls: Rows = []
        if with_calls:
            calls += sent_calls(connection, "document_id", [document_id])[document_id]
            calls += sent_calls(connection, "question_id", [question_id])[question_id]
        return Trace(
            question,
            {name: sections for name, sections in memories.items() if sections},
            methods,
            calls,
            query(connection, "from left_out"),
        )


def read_sections(
    connection: Any, key: str, ids: Sequence[str], as_drawn: bool = False
) -> dict[str, list[Section]]:
    """The sections of each document or question (`key` is document_id or question_id), in the order
    that `order_stages` sets. Vectors are left out, and steps that cannot be read. `as_drawn`: a
    table that the page draws has all columns; any other table has those that a trace reads."""
    connection.execute("set variable ids = ?", [list(ids)])
    tables = query(connection, _SQL["tables"])
    steps = query(connection, "select step_id, stage from steps")
    stages = {row["step_id"]: row["stage"] for row in steps}
    positions = {(row["stage"], row["table_name"]): n for n, row in enumerate(tables)}
    of_questions = key == "question_id"
    sections: dict[str, list[Section]] = {name: [] for name in ids}
    for table in {row["table_name"] for row in tables if row["per_question"] == of_questions}:
        record = RECORDS.get(table)
        is_drawn = as_drawn and record is not None and record.drawn
        traced = record.sql().get("traced") if record and not is_drawn else None
        source = f"({traced}\n)" if traced else table
        order = ", ".join(["step_id", key, *(record.key if record else ["columns(*)"])])
        rows = query(
            connection,
            f"from {source} where {key} in (select unnest(getvariable('ids')))"
            f" and step_id in (select step_id from steps) order by {order}",
        )
        for (step_id, name), group in groupby(rows, itemgetter("step_id", key)):
            of_step = [{k: v for k, v in row.items() if not is_vector(v)} for row in group]
            sections[name].append(Section(stages[step_id], table, record, of_step))
    for section_list in sections.values():
        section_list.sort(key=lambda section: positions[section.stage, section.table])
    return sections


def order_stages(connection: Any, stages: Sequence[str]) -> None:
    """Set the order of stages in which `read_sections` and `sent_calls` return rows."""
    connection.execute("set variable stages = ?", [list(stages)])


def sent_calls(connection: Any, key: str, ids: Sequence[str]) -> dict[str, Rows]:
    """Rows of `calls` by id. If `key` is question_id: what methods and raters sent about questions;
    if it is document_id: what was sent to make the memories of documents. The column `messages` is
    what the engine got, before its chat template; None if it was not kept."""
    connection.execute("set variable asked_about = ?", [list(ids)])
    calls: dict[str, Rows] = {name: [] for name in ids}
    for row in query(connection, _SQL[key]):
        calls[row[key]].append(row)
    return calls


def read_sent(options: ReadOptions, question: str | None, document: str | None) -> Rows:
    """The calls of a run's question, or of a document's memories. Raises UsageError unless exactly
    one of them is given, and if the run does not have it."""
    if (question is None) == (document is None):
        raise UsageError("sent: name a question or a document, one of them")
    with options.opened() as (folder, connection):
        order_stages(connection, folder.report_facts()["stages"])
        kind, name = ("document", document) if question is None else ("question", question)
        stored = stored_id(connection, kind, str(name))
        return sent_calls(connection, f"{kind}_id", [stored])[stored]


def stored_id(connection: Any, kind: str, name: str) -> str:
    """The id of a question or document (the `kind`) as the run spells it, in Unicode's NFC or NFD.
    Raises UsageError if the run has none, naming ids like it."""
    connection.execute("set variable named = ?", [name])
    near = query(
        connection,
        f"select {kind}_id as id, nfc_normalize(id) = nfc_normalize(getvariable('named')) as is_it "
        f"from {kind}s order by id <> getvariable('named'), not is_it, "
        "jaro_winkler_similarity(id, getvariable('named')) desc, id limit 3",
    )
    if near and near[0]["is_it"]:
        return str(near[0]["id"])
    similar = ", ".join(row["id"] for row in near)
    raise UsageError(f"{name}: no such {kind} in the run; nearest: {similar}")


@dataclass(frozen=True)
class Lane:
    """The text that one method read: a picture as SVG, and how many percent it covers of the
    document, of the gold evidence and of each passage of that. `gold` is None without evidence."""

    svg: str
    read: float
    gold: float | None
    passages: tuple[float, ...]


def lane(num_chars: int, read: Spans, gold: Sequence[Mapping[str, Any]]) -> Lane:
    """`num_chars`: the characters of the document."""
    of_read, of_gold = _joined(read), _joined(gold)
    return Lane(
        svg=_drawn(num_chars, gold=of_gold, read=of_read),
        read=_percent(of_read, [(0, num_chars)]),
        gold=_percent(of_read, of_gold) if of_gold else None,
        passages=tuple(_percent(of_read, _joined([passage])) for passage in gold),
    )


def _percent(read: _Joined, of: _Joined) -> float:
    """Percentage of the characters in `of`, to one decimal; 0 if there are none."""
    seen = sum(max(0, min(b, d) - max(a, c)) for a, b in read for c, d in of)
    length = sum(end - start for start, end in of)
    return round(100 * seen / length, 1) if length else 0.0


def pages_lane(num_chars: int, pages: Sequence[Mapping[str, Any]]) -> str:
    """The lane of a memory's pages, as SVG: each is a rectangle with its data-page."""
    return _drawn(num_chars, pages=pages)


def _joined(spans: Spans) -> _Joined:
    """The spans in order; spans that touch or overlap become one."""
    joined: _Joined = []
    for start, end in sorted((span["start_char"], span["end_char"]) for span in spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def _drawn(num_chars: int, **parts: Any) -> str:
    return _TEMPLATES.get_template("reading_map_lane.svg.jinja").render(
        num_chars=max(num_chars, 1), least=max(num_chars, 1) / _LEAST, **parts
    )


@dataclass(frozen=True)
class ReadingMap:
    """SVG lanes by method, and of pages by memory. A notebook shows them as a table."""

    question_id: str
    document_id: str
    num_chars: int
    pages: Mapping[str, str]
    methods: Mapping[str, Lane]

    def _repr_html_(self) -> str:
        pages = {memory: Markup(svg) for memory, svg in self.pages.items()}
        methods = [(name, Markup(lane.svg), lane) for name, lane in self.methods.items()]
        return _TEMPLATES.get_template("reading_map.jinja").render(
            map=self, pages=pages, methods=methods
        )


def read_reading_map(options: ReadOptions, question: str) -> ReadingMap:
    """The map of the first repeat. Raises UsageError if the run has no such question."""
    with options.opened() as (_, connection):
        question = stored_id(connection, "question", question)
        connection.execute("set variable questions = ?", [[question]])
        (row,) = query(connection, _SQL["mapped"])
        connection.execute("set variable documents = ?", [[row["document_id"]]])
        num_chars, gold = row["num_chars"], row["evidence"] or ()
        pages = {of["memory"]: pages_lane(num_chars, of["spans"])
                 for of in query(connection, PAGE_SPANS)}  # fmt: skip
        methods = {of["method"]: lane(num_chars, of["spans"] or (), gold)
                   for of in query(connection, READINGS) if of["repeat"] == 0}  # fmt: skip
        return ReadingMap(question, row["document_id"], num_chars, pages, methods)
