"""LongMemEval (xiaowu0162/LongMemEval): one JSON list of questions, each with its own chat history.

A history is a document, its text as sessions.py writes it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Document
from stages.corpora.chats.sessions import (
    Session,
    by_date,
    evidence_turns,
    session_of,
    starts,
    written,
)
from stages.corpora.reading.asked import Asked, Value
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_files import files_of, rows_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document, question_or_bad, unreadable
from stages.corpora.reading.row_checks import (
    BadInputError,
    json_text,
    kind_of,
    label_of,
    merged,
    optional_text,
    texts_of,
)

_ASKED = ("question", "question_date", "haystack_dates", "haystack_sessions")  # make an id
# Answers of these types are rubrics, with which word overlap is meaningless.
_ONLY_JUDGED = ("single-session-preference",)

# The sessions of a row's history, in order, from the row's value and the document's id.
Compile = Callable[[dict[str, Any], str], list[Session]]


class HistoryCorpus(FileCorpus):
    """Files in LongMemEval's format: a row is a question with its sessions."""

    page_breaks: ClassVar[bool] = True

    def rows(self) -> Iterator[Row]:
        """The rows of longmemeval_oracle.json, _s or _m, or of a folder with one of them.

        Raises UsageError where nothing can be read.
        """
        return rows_of(files_of(self.path, "longmemeval_*.json", "*.jsonl"))

    def histories(self, compile_history: Compile, ids: Ids) -> Iterator[Loaded]:
        """Yield one Loaded per question: its history and the question; both have its id.

        A history for which `compile_history` raises BadInputError is bad_input as a whole.
        """
        for row in self.rows():
            if row.value is None:
                yield unreadable(row, ids)
            else:
                yield self._history(row, row.value, ids, compile_history)

    def _history(
        self, row: Row, value: dict[str, Any], ids: Ids, compile_history: Compile
    ) -> Loaded:
        content = [value.get(key) for key in _ASKED]
        found = document_id, _ = ids.of_row(row, "question_id", content)
        sessions: list[Session] = []
        try:
            sessions = compile_history(value, document_id)
            document = self._document(document_id, sessions)
        except BadInputError as wrong:
            document = bad_document(document_id, row.detail(wrong))
        asked = _asked(sessions if document.problem is None else [])
        parse = partial(asked.read, document_id)
        return Loaded(document, (question_or_bad(row, document_id, found, parse),))

    def _document(self, document_id: str, sessions: Sequence[Session]) -> Document:
        about = [
            {"session_id": session.session_id, "date": session.date, "start_char": start}
            for session, start in zip(sessions, starts(sessions), strict=True)
        ]
        text = "".join(map(written, sessions))
        return self.document(document_id, text, metadata=json_text({"sessions": about}))


class LongMemEvalCorpus(HistoryCorpus):
    """The histories as they are in the file. Streamed: longmemeval_m has 2.75 GB."""

    papers: ClassVar[tuple[str, ...]] = ("longmemeval",)
    format: Literal["longmemeval"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per question. A history with a session or turn that cannot be read is
        bad_input as a whole. Raises UsageError where nothing can be read."""
        return self.histories(lambda value, _: by_date(sessions_of(value)), Ids())


def sessions_of(value: dict[str, Any]) -> list[Session]:
    """The sessions of a question's row, in file order. Raises BadInputError."""
    found = value.get("haystack_sessions")
    if not isinstance(found, list):
        raise BadInputError(f"`haystack_sessions` is {kind_of(found)}, not a list; fix it")
    dates, ids = (texts_of(value, f"haystack_{key}") for key in ("dates", "session_ids"))
    for key, beside in (("dates", dates), ("session_ids", ids)):
        if beside and len(beside) != len(found):
            raise BadInputError(f"{len(found)} sessions, {len(beside)} `haystack_{key}`; fix them")
    return [
        session_of(
            turns,
            f"haystack_sessions[{index}]",
            dates[index] if dates else None,
            ids[index] if ids else None,
        )
        for index, turns in enumerate(found)
    ]


def _asked(sessions: Sequence[Session]) -> Asked:
    """The question of a row; `sessions`: its history, none where that cannot be read."""
    return Asked(question="question", references=_references, more=partial(_more, sessions))


def _references(value: Value) -> tuple[str, ...]:
    answer = label_of(value, "answer")
    return () if answer is None else (answer,)


def _more(sessions: Sequence[Session], value: Value) -> Mapping[str, Any]:
    kind = optional_text(value, "question_type")
    evidence_ids = texts_of(value, "answer_session_ids")
    turns = list(evidence_turns(sessions, evidence_ids))
    is_abstention = (label_of(value, "question_id") or "").endswith("_abs")
    about: dict[str, Any] = {
        "answer_session_ids": evidence_ids,
        "is_abstention": is_abstention,
        "has_user_evidence": any(turn.startswith("user: ") for _, turn in turns),
    }
    return {
        "only_judged": is_abstention or kind in _ONLY_JUDGED,
        "question_type": kind,
        "task": "abstention" if is_abstention else None,
        "asked_at": optional_text(value, "question_date"),
        "evidence": merged((start, start + len(turn)) for start, turn in turns),
        "metadata": json_text(about),
    }
