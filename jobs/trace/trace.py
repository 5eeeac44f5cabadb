"""Collects all rows of one question, of its document's memories and of every method; and the calls
of questions and of memories, with the messages sent for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.rows import RECORDS, Record, is_vector
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query
from pipeline.store.sql.memory_names import SHARED

_SQL = sql_beside(__file__)
TABLES = _SQL["tables"]
STEPS = "select step_id, stage from steps"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Section:
    """The rows that a stage wrote for one question, or for its document in one memory.

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
        stages = folder.report_facts()["stages"]
        return _Reader(connection, question_id, stages).trace(options.method, with_calls)


class _Reader:
    """Reads each table of a run once for a question, as a run may have thousands of files."""

    def __init__(self, connection: Any, question_id: str, stages: Sequence[str]) -> None:
        self.connection, self.stages = connection, stages
        question_id = stored_id(connection, "question", question_id)
        connection.execute("set variable question = ?", [question_id])
        connection.execute("set variable stages = ?", [list(stages)])
        (self.question,) = query(connection, _SQL["question"])
        connection.execute("set variable document = ?", [self.question["document_id"]])
        self.steps = {row["step_id"]: row["stage"] for row in query(connection, STEPS)}
        self.tables = query(connection, TABLES)

    def trace(self, prefix: str | None, with_calls: bool) -> Trace:
        sections = self._sections(True, "question_id = getvariable('question')")
        found = sorted({(row["method"], row["repeat"]) for s in sections for row in s.rows})
        methods = [pair for pair in found if prefix is None or pair[0].startswith(prefix)]
        if prefix is not None and not methods:
            question_id = self.question["question_id"]
            raise UsageError(f"method={prefix}: no such method has answered {question_id}")
        of_documents = self._sections(False, "document_id = getvariable('document')")
        self.connection.execute("set variable methods = ?", [[method for method, _ in methods]])
        names = [SHARED, *(row["memory"] for row in query(self.connection, _SQL["rests_on"]))]
        memories = {name: _where(of_documents, memory=name) for name in names}
        return Trace(
            self.question,
            {name: own for name, own in memories.items() if own},
            {(m, repeat): _where(sections, method=m, repeat=repeat) for m, repeat in methods},
            self._calls() if with_calls else [],
            query(self.connection, "from left_out"),
        )

    def _calls(self) -> Rows:
        sent = SentCalls(self.connection, self.stages)
        of_document = sent.of_documents([self.question["document_id"]])
        of_question = sent.of_questions([self.question["question_id"]])
        return [
            call for calls in (of_document, of_question) for own in calls.values() for call in own
        ]

    def _sections(self, per_question: bool, where: str) -> list[Section]:
        tables = [row for row in self.tables if row["per_question"] == per_question]
        rows = {name: self._rows(name, where) for name in {row["table_name"] for row in tables}}
        return [
            Section(
                of["stage"],
                of["table_name"],
                RECORDS.get(of["table_name"]),
                [r for r in rows[of["table_name"]] if self.steps.get(r["step_id"]) == of["stage"]],
            )
            for of in tables
        ]

    def _rows(self, table: str, where: str) -> Rows:
        """The rows of a table without vectors, ordered by step and key."""
        record = RECORDS.get(table)
        traced = record.sql().get("traced") if record else None
        source = f"({traced}\n)" if traced else table
        order = ", ".join(["step_id", *record.key]) if record else "all"
        found = query(self.connection, f"from {source} where {where} order by {order}")
        return [{k: v for k, v in row.items() if not is_vector(v)} for row in found]


def _where(sections: Iterable[Section], **values: Any) -> list[Section]:
    found = [
        replace(s, rows=[r for r in s.rows if all(r[k] == v for k, v in values.items())])
        for s in sections
    ]
    return [section for section in found if section.rows]


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
