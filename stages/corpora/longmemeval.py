"""LongMemEval (xiaowu0162/LongMemEval): one JSON list of questions, each with its own chat history.

A history is a document of sessions in the order of their dates. A session begins with a form feed
and a header, `[2023/05/30 (Tue) 21:48]`; each turn is a paragraph, `user: ...`. So a session's end
is a page break (stages/index/paginate.py), and its header counts no words (stages/text/words.py).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

from upath import UPath

from pipeline.rows import Document, Question, Span
from stages.corpora.checks import (
    BadInputError,
    json_text,
    kind_of,
    label_of,
    merged,
    optional_text,
    question_of,
    text_of,
    texts_of,
)
from stages.corpora.corpus import FileCorpus
from stages.corpora.files import files_of, rows_of
from stages.corpora.ids import Ids
from stages.corpora.loaded import Loaded, bad_document, question_or_bad, unreadable
from stages.corpora.row import Row
from stages.text.words import PAGE_BREAK

_ASKED = ("question", "question_date", "haystack_dates", "haystack_sessions")  # make an id
_DATE = "%Y/%m/%d (%a) %H:%M"
_BLANK_LINES = re.compile(r"\n\s*\n")
_NOT_IN_HEADERS = re.compile(r"[\[\]\s]+")
# Answers of these types are rubrics, with which word overlap is meaningless.
_ONLY_JUDGED = ("single-session-preference",)


@dataclass(frozen=True, slots=True)
class Session:
    """`turns`: each as `role: content`; `marked`: indexes of the turns that contain the answer."""

    session_id: str | None
    date: str | None
    turns: Sequence[str]
    marked: Sequence[int]

    @property
    def when(self) -> datetime | None:
        """The date; null where it is not in the format of the published files."""
        try:
            return datetime.strptime(self.date or "", _DATE)
        except ValueError:
            return None


class LongMemEvalCorpus(FileCorpus):
    """longmemeval_oracle.json, _s or _m, or a folder with one of them. Streamed: _m has 2.75 GB."""

    format: Literal["longmemeval"]

    page_breaks: ClassVar[bool] = True

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per question: its history and the question; both have its id.

        A history with a session or turn that cannot be read is bad_input as a whole. Raises
        UsageError where nothing can be read.
        """
        ids = Ids()
        for row in rows_of(self._files()):
            if row.value is None:
                yield unreadable(row, ids)
            else:
                yield self._history(row, row.value, ids)

    def _files(self) -> list[UPath]:
        return files_of(self.path, "longmemeval_*.json", "*.jsonl")

    def _history(self, row: Row, value: dict[str, Any], ids: Ids) -> Loaded:
        content = [value.get(key) for key in _ASKED]
        found = document_id, _ = ids.of_row(row, "question_id", content)
        sessions: list[Session] | None = None
        try:
            sessions = _sessions(value)
            document = self._document(document_id, sessions)
        except BadInputError as wrong:
            document = bad_document(document_id, row.detail(wrong))
        usable = sessions if document.problem is None else None

        def parse(value: dict[str, Any], question_id: str) -> Question:
            return _question(document_id, usable, value, question_id)

        return Loaded(document, (question_or_bad(row, document_id, found, parse),))

    def _document(self, document_id: str, sessions: Sequence[Session]) -> Document:
        starts = _starts(sessions)
        about = [
            {"session_id": session.session_id, "date": session.date, "start_char": start}
            for session, start in zip(sessions, starts, strict=True)
        ]
        text = "".join(map(_written, sessions))
        return self.document(document_id, text, metadata=json_text({"sessions": about}))


def _sessions(value: dict[str, Any]) -> list[Session]:
    """The sessions, earliest first; in file order where a date cannot be read."""
    found = value.get("haystack_sessions")
    if not isinstance(found, list):
        raise BadInputError(f"`haystack_sessions` is {kind_of(found)}, not a list; fix it")
    dates, ids = (texts_of(value, f"haystack_{key}") for key in ("dates", "session_ids"))
    for key, beside in (("dates", dates), ("session_ids", ids)):
        if beside and len(beside) != len(found):
            raise BadInputError(f"{len(found)} sessions, {len(beside)} `haystack_{key}`; fix them")
    sessions = [
        _session(turns, index, dates[index] if dates else None, ids[index] if ids else None)
        for index, turns in enumerate(found)
    ]
    when = {id(session): session.when for session in sessions}
    if all(when.values()):
        sessions.sort(key=lambda session: when[id(session)] or datetime.min)
    return [session for session in sessions if session.turns]


def _session(turns: Any, index: int, date: str | None, session_id: str | None) -> Session:
    place = f"haystack_sessions[{index}]"
    if not isinstance(turns, list):
        raise BadInputError(f"{place} is {kind_of(turns)}, not a list; fix it")
    lines, marked = [], []
    for number, turn in enumerate(turns):
        if not isinstance(turn, dict):
            raise BadInputError(f"{place}[{number}] is {kind_of(turn)}, not an object; fix it")
        try:
            role, content = text_of(turn, "role"), text_of(turn, "content")
        except BadInputError as wrong:
            raise BadInputError(f"{place}[{number}]: {wrong}") from wrong
        lines.append(_BLANK_LINES.sub("\n", f"{role}: {content}".replace(PAGE_BREAK, " ")).strip())
        if turn.get("has_answer") is True:
            marked.append(number)
    return Session(session_id, date, lines, marked)


def _header(session: Session) -> str:
    date = _NOT_IN_HEADERS.sub(" ", session.date or "no date").strip()
    return f"{PAGE_BREAK}[{date}]\n"


def _written(session: Session) -> str:
    return _header(session) + "\n\n".join(session.turns) + "\n\n"


def _starts(sessions: Sequence[Session]) -> list[int]:
    """The position in the text where each session begins."""
    starts = [0]
    for session in sessions:
        starts.append(starts[-1] + len(_written(session)))
    return starts[:-1]


def _question(
    document_id: str, sessions: Sequence[Session] | None, value: dict[str, Any], question_id: str
) -> Question:
    kind = optional_text(value, "question_type")
    evidence_ids = texts_of(value, "answer_session_ids")
    is_abstention = question_id.endswith("_abs")
    answer = label_of(value, "answer")
    evidence = merged(_spans(sessions or (), evidence_ids))
    about: dict[str, Any] = {
        "answer_session_ids": evidence_ids,
        "is_abstention": is_abstention,
        "has_user_evidence": _has_user_turn(sessions or (), evidence),
    }
    return Question(
        only_judged=is_abstention or kind in _ONLY_JUDGED,
        document_id=document_id,
        question_id=question_id,
        question=question_of(value, "question"),
        references=() if answer is None else (answer,),
        question_type=kind,
        asked_at=optional_text(value, "question_date"),
        evidence=evidence,
        metadata=json_text(about),
    )


def _has_user_turn(sessions: Sequence[Session], evidence: Sequence[Span]) -> bool:
    """Whether a turn with evidence is the user's; spans begin with their turns."""
    text = "".join(map(_written, sessions))
    return any(text.startswith("user: ", span.start_char) for span in evidence)


def _spans(sessions: Sequence[Session], evidence_ids: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Spans of the turns marked as containing the answer; without marks, of all turns of the answer
    sessions."""
    is_marked = any(session.marked for session in sessions if session.session_id in evidence_ids)
    for session, start in zip(sessions, _starts(sessions), strict=True):
        if session.session_id not in evidence_ids:
            continue
        at = start + len(_header(session))
        for number, turn in enumerate(session.turns):
            if (number in session.marked or not is_marked) and turn:
                yield at, at + len(turn)
            at += len(turn) + 2
