"""Collects all rows of one question, of its document's memories and of every method; and the calls
of questions and of memories, with the messages sent for them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.rows import RECORDS, Record, is_vector
from pipeline.core.sql_files import sql_beside
from pipeline.store.shards.layout import SHARED
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)
_STEPS = "select step_id, stage from steps"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Section:
    """The rows that a step wrote for one question, or for its document.

    `record` is None if it belongs to a plugin that is not loaded.
    """

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

    def made(self, memory: str) -> Rows:
        """The calls that made a memory."""
        return [call for call in self.calls if (call["method"], call["memory"]) == (None, memory)]

    def asked(self, method: str, repeat: int) -> Rows:
        """The calls that a method and its raters made for the question."""
        return [c for c in self.calls if (c["method"], c["repeat"]) == (method, repeat)]

    def as_json(self) -> dict[str, Any]:
        """Rows by table, as JSON. A stage with one row per question also has a key of its name."""
        return {
            "question": self.question,
            "memories": {
                name: {**_by_table(sections), **_calls(self.made(name))}
                for name, sections in self.memories.items()
            },
            "methods": [
                {
                    "method": method,
                    "repeat": repeat,
                    **_single(sections),
                    **_by_table(sections),
                    **_calls(self.asked(method, repeat)),
                }
                for (method, repeat), sections in self.methods.items()
            ],
            "left_out": self.left_out,
        }


def _calls(calls: Rows) -> dict[str, Rows]:
    return {"calls": calls} if calls else {}


def _by_table(sections: Iterable[Section]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for section in sections:
        found.setdefault(section.table, []).extend(section.rows)
    return found


def _single(sections: Iterable[Section]) -> dict[str, Any]:
    return {
        section.stage: section.rows[0]
        for section in sections
        if section.record is not None and section.record.key == ("question_id",) and section.rows
    }


def trace(options: ReadOptions, question_id: str, with_calls: bool = False) -> Trace:
    """The trace of a question, by the methods whose name starts with `options.method`; `with_calls`
    adds every call, as it was sent.

    Raises UsageError if the run has no such question or method.
    """
    with options.opened() as (folder, connection):
        sent = SentCalls(connection, folder.report_facts()["stages"])
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
            calls += sent.of_documents([document_id])[document_id]
            calls += sent.of_questions([question_id])[question_id]
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
    of the stages in the variable `stages`; without vectors, and without rows of steps that cannot
    be read. `as_drawn`: tables that a page draws have all their columns, in place of those that a
    trace reads."""
    connection.execute("set variable ids = ?", [list(ids)])
    tables = query(connection, _SQL["tables"])
    stages = {row["step_id"]: row["stage"] for row in query(connection, _STEPS)}
    places = {(of["stage"], of["table_name"]): place for place, of in enumerate(tables)}
    of_questions = key == "question_id"
    found: dict[str, list[Section]] = {name: [] for name in ids}
    for table in {of["table_name"] for of in tables if of["per_question"] == of_questions}:
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
        for (step_id, name), own in groupby(rows, itemgetter("step_id", key)):
            shown = [{k: v for k, v in row.items() if not is_vector(v)} for row in own]
            found[name].append(Section(stages[step_id], table, record, shown))
    for sections in found.values():
        sections.sort(key=lambda section: places[section.stage, section.table])
    return found


class SentCalls:
    """The calls of one run, over a connection of that run (`pipeline.store.connect`).

    Each call is its row of `calls`, in the order of the `stages`. `messages` is what the engine
    got, before its chat template: a list of {role, content}; None if it was not kept.
    """

    def __init__(self, connection: Any, stages: Sequence[str]) -> None:
        self._connection = connection
        connection.execute("set variable stages = ?", [list(stages)])

    def of_questions(self, question_ids: Iterable[str]) -> dict[str, Rows]:
        """The calls of all methods and raters, by question."""
        return self._of("question_id", question_ids)

    def of_documents(self, document_ids: Iterable[str]) -> dict[str, Rows]:
        """The calls that made the documents' memories, by document."""
        return self._of("document_id", document_ids)

    def _of(self, key: str, ids: Iterable[str]) -> dict[str, Rows]:
        names = list(ids)
        self._connection.execute("set variable asked_about = ?", [names])
        found: dict[str, Rows] = {name: [] for name in names}
        for row in query(self._connection, _SQL[key]):
            found[row[key]].append(row)
        return found


def read_sent(options: ReadOptions, question: str | None, document: str | None) -> Rows:
    """The calls of a run's question, or of a document's memories. Raises UsageError if the run has
    no such question or document, or unless exactly one is given."""
    if (question is None) == (document is None):
        raise UsageError("sent: name a question or a document, one of them")
    with options.opened() as (folder, connection):
        calls = SentCalls(connection, folder.report_facts()["stages"])
        if question is not None:
            question = stored_id(connection, "question", question)
            return calls.of_questions([question])[question]
        assert document is not None
        document = stored_id(connection, "document", document)
        return calls.of_documents([document])[document]


def stored_id(connection: Any, kind: str, name: str) -> str:
    """The id of a question or document (the `kind`) as the run spells it, in Unicode's NFC or NFD.

    Raises UsageError if the run has none, naming other runs that have it, or ids like it.
    """
    column = f"{kind}_id"
    connection.execute("set variable named = ?", [name])
    is_it = f"{column} = getvariable('named')"
    if not name.isascii():
        is_it = f"nfc_normalize({column}) = nfc_normalize(getvariable('named'))"
    found = query(
        connection,
        f"select {column} as id from {kind}s where {is_it} "
        f"order by {column} <> getvariable('named') limit 1",
    )
    if found:
        return str(found[0]["id"])
    others = query(
        connection,
        f"select distinct run from all_{kind}s where {is_it} and run is not null "
        "order by run limit 3",
    )
    if others:
        runs = " or ".join(f"run={row['run']}" for row in others)
        raise UsageError(f"{name}: not in this run; add {runs}")
    near = query(
        connection,
        f"select {column} as id from {kind}s "
        f"order by jaro_winkler_similarity({column}, getvariable('named')) desc, {column} limit 3",
    )
    similar = ", ".join(row["id"] for row in near)
    raise UsageError(f"{name}: no such {kind} in the run; nearest: {similar}")
