"""Read the calls of questions and of documents' memories, with the messages sent for them."""

from collections.abc import Iterable, Sequence
from typing import Any

from jobs.config.options import ReadOptions
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import sql_beside
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
