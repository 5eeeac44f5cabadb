"""Read the calls of questions and of documents' memories, with the messages sent for them."""

from collections.abc import Iterable, Sequence
from typing import Any

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.core.sql_files import sql_beside
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)

Rows = list[dict[str, Any]]


class SentCalls:
    """The calls of one run, over a connection of that run (`pipeline.store.connect`).

    Each is its row of `calls`, in the order of the `stages`. `messages` is what was handed to the
    engine, before its chat template: a list of {role, content}; None if it was not kept.
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
    no such question or document, or both or none are given."""
    if (question is None) == (document is None):
        raise UsageError("sent: name a question or a document, one of them")
    run = run_name(options.warehouse, options.run)
    stages = RunFolder(options.warehouse, run).report_facts()["stages"]
    with connect(options.warehouse, run) as connection:
        calls = SentCalls(connection, stages)
        if question is not None:
            question = id_as_stored(connection, "question", question)
            refuse_unknown(connection, "question", question)
            return calls.of_questions([question])[question]
        assert document is not None
        document = id_as_stored(connection, "document", document)
        refuse_unknown(connection, "document", document)
        return calls.of_documents([document])[document]


def id_as_stored(connection: Any, kind: str, name: str) -> str:
    """The id of a question or document (the `kind`) as the run spells it, in Unicode's NFC or NFD;
    `name` itself where there is none of that name."""
    if name.isascii():
        return name
    connection.execute("set variable named = ?", [name])
    found = query(
        connection,
        f"select {kind}_id as id from {kind}s where nfc_normalize({kind}_id) = "
        f"nfc_normalize(getvariable('named')) order by {kind}_id <> getvariable('named') limit 1",
    )
    return str(found[0]["id"]) if found else name


def refuse_unknown(connection: Any, kind: str, name: str) -> None:
    """Raise UsageError unless the run has a question or document (the `kind`) of this id."""
    known = [row["id"] for row in query(connection, f"select {kind}_id as id from {kind}s")]
    if name not in known:
        raise UsageError(f"{name}: no such {kind} in the run; {hint(name, known)}")
