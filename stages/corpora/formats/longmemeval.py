"""LongMemEval (xiaowu0162/LongMemEval): one JSON list of questions, each with its own chat history.

A history is a document, its text as sessions.py writes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from stages.corpora.chats.sessions import (
    Session,
    by_date,
    evidence_turns,
    session_of,
    starts,
    written,
)
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import (
    BadInputError,
    Row,
    json_text,
    label_of,
    list_of,
    merged,
    optional_text,
    texts_of,
)
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.questions import Asked, Value, single

_MAKES_ID = ("question", "question_date", "haystack_dates", "haystack_sessions")
# Answers of these types are rubrics, with which word overlap is meaningless.
_ONLY_JUDGED = ("single-session-preference",)


class LongMemEvalCorpus(FileCorpus):
    """longmemeval_oracle.json, _s or _m, or a folder with one of them: a row is a question with its
    sessions. Streamed: longmemeval_m has 2.75 GB."""

    papers: ClassVar[tuple[str, ...]] = ("longmemeval",)
    licences: ClassVar[Mapping[str, str]] = {"LongMemEval": "MIT"}
    format: Literal["longmemeval"]
    page_breaks: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = ("longmemeval_*.json", "*.jsonl")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per question: its history and the question; both have its id. A history
        with a session or turn that cannot be read is bad_input as a whole. Raises UsageError where
        nothing can be read."""
        ids = Ids()
        for row in self.rows():
            if row.value is None:
                yield Loaded(bad_document(ids.of_place(row), row.detail(row.wrong)), ())
            else:
                yield self._history(row, row.value, ids)

    def _history(self, row: Row, value: Value, ids: Ids) -> Loaded:
        found = document_id, _ = ids.of_row(row, "question_id", [value.get(k) for k in _MAKES_ID])
        try:
            sessions = by_date(sessions_of(value))
            about = [
                {"session_id": session.session_id, "date": session.date, "start_char": start}
                for session, start in zip(sessions, starts(sessions), strict=True)
            ]
            text, metadata = "".join(map(written, sessions)), json_text({"sessions": about})
            document = self.document(document_id, text, metadata=metadata)
        except BadInputError as wrong:
            sessions, document = [], bad_document(document_id, row.detail(wrong))
        return Loaded(document, (_asked(sessions).read(row, document_id, found),))


def sessions_of(value: dict[str, Any]) -> list[Session]:
    """The sessions of a question's row, in file order. Raises BadInputError."""
    found = list_of(value, "haystack_sessions")
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
    return Asked(
        question="question",
        references=lambda value: single(label_of(value, "answer")),
        question_type=lambda value: optional_text(value, "question_type"),
        metadata=partial(_metadata, sessions),
        evidence=lambda value: merged((at, at + len(t)) for at, t in _turns(sessions, value)),
        asked_at="question_date",
        more=_more,
    )


def _turns(sessions: Sequence[Session], value: Value) -> Iterator[tuple[int, str]]:
    return evidence_turns(sessions, texts_of(value, "answer_session_ids"))


def _metadata(sessions: Sequence[Session], value: Value) -> str:
    turns = _turns(sessions, value)
    about = {
        "answer_session_ids": texts_of(value, "answer_session_ids"),
        "is_abstention": _is_abstention(value),
        # Half-open spans: LongMemEval's metrics of retrieval count no other evidence.
        "user_evidence": [[at, at + len(turn)] for at, turn in turns if turn.startswith("user:")],
    }
    return json_text(about)


def _is_abstention(value: Value) -> bool:
    return (label_of(value, "question_id") or "").endswith("_abs")


def _more(value: Value) -> Mapping[str, Any]:
    is_abstention = _is_abstention(value)
    return {
        "only_judged": is_abstention or value.get("question_type") in _ONLY_JUDGED,
        "task": "abstention" if is_abstention else None,
    }
