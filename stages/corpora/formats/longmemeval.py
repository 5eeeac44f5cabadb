"""LongMemEval (xiaowu0162/LongMemEval): one JSON list of questions, each with its own chat history.

A history is a document of sessions in the order of their dates. A session begins with a form feed
and a header, `[2023/05/30 (Tue) 21:48]`; each turn is a paragraph, `user: ...`. So pages break
between sessions (stages/index/paginate.py), and headers count no words (stages/text/words.py).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Span
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document
from stages.corpora.reading.corpus_row import (
    BadInputError,
    Ids,
    Row,
    Value,
    json_text,
    kind_of,
    label_of,
    list_of,
    optional_text,
    text_of,
    texts_of,
)
from stages.corpora.reading.questions import QuestionLayout, single
from stages.text.chat_text import NO_DATE
from stages.text.words import PAGE_BREAK, merged

_DATE = "%Y/%m/%d (%a) %H:%M"
_BLANK_LINES = re.compile(r"\n\s*\n")
_NOT_IN_HEADERS = re.compile(r"[\[\]\s]+")
_MAKES_ID = ("question", "question_date", "haystack_dates", "haystack_sessions")
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
    def header(self) -> str:
        date = _NOT_IN_HEADERS.sub(" ", self.date or NO_DATE).strip()
        return f"{PAGE_BREAK}[{date}]\n"

    @property
    def text(self) -> str:
        return self.header + "\n\n".join(self.turns) + "\n\n"


def session_of(turns: Any, place: str, date: str | None, session_id: str | None) -> Session:
    """Read a list of objects with `role`, `content` and perhaps `has_answer`. `place`: position of
    the list in its row, for messages. Raises BadInputError."""
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


def by_date(sessions: Sequence[Session]) -> list[Session]:
    """The sessions that have turns, by date; in the given order if any date cannot be read."""
    try:
        dates = [datetime.strptime(session.date or "", _DATE) for session in sessions]
    except ValueError:
        dates = [datetime.min] * len(sessions)
    order = sorted(range(len(sessions)), key=dates.__getitem__)
    return [sessions[index] for index in order if sessions[index].turns]


def starts(sessions: Sequence[Session]) -> list[int]:
    return [*accumulate((len(session.text) for session in sessions[:-1]), initial=0)]


def evidence_turns(
    sessions: Sequence[Session], evidence_ids: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Position and text of each turn marked as containing the answer; without marks, of all turns
    of the answer sessions."""
    is_marked = any(session.marked for session in sessions if session.session_id in evidence_ids)
    for session, start in zip(sessions, starts(sessions), strict=False):
        if session.session_id not in evidence_ids:
            continue
        at = start + len(session.header)
        for number, turn in enumerate(session.turns):
            if (number in session.marked or not is_marked) and turn:
                yield at, turn
            at += len(turn) + 2


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
        given = document_id, _ = ids.of_row(row, "question_id", [value.get(k) for k in _MAKES_ID])
        try:
            sessions = by_date(sessions_of(value))
            about = [
                {"session_id": session.session_id, "date": session.date, "start_char": start}
                for session, start in zip(sessions, starts(sessions), strict=False)
            ]
            text = "".join(session.text for session in sessions)
            metadata = json_text({"sessions": about})
            document = self.document(document_id, text, metadata=metadata)
        except BadInputError as wrong:
            sessions, document = [], bad_document(document_id, row.detail(wrong))
        return Loaded(document, (_question_layout(sessions).read(row, document_id, given),))


def sessions_of(value: Value) -> list[Session]:
    """The sessions of a question's row, in file order. Raises BadInputError."""
    sessions = list_of(value, "haystack_sessions")
    beside = []
    for key in ("haystack_dates", "haystack_session_ids"):
        texts = texts_of(value, key)
        if texts and len(texts) != len(sessions):
            raise BadInputError(f"{len(sessions)} sessions, {len(texts)} `{key}`; fix them")
        beside.append(texts or [None] * len(sessions))
    return [
        session_of(turns, f"haystack_sessions[{index}]", date, session_id)
        for index, (turns, date, session_id) in enumerate(zip(sessions, *beside, strict=True))
    ]


def _question_layout(sessions: Sequence[Session]) -> QuestionLayout:
    """`sessions`: the question's history, empty where it cannot be read."""

    def spans(value: Value, role: str = "") -> list[Span]:
        turns = evidence_turns(sessions, texts_of(value, "answer_session_ids"))
        return [Span(at, at + len(turn)) for at, turn in turns if turn.startswith(role)]

    def is_abstention(value: Value) -> bool:
        return (label_of(value, "question_id") or "").endswith("_abs")

    def metadata(value: Value) -> str:
        about = {
            "answer_session_ids": texts_of(value, "answer_session_ids"),
            "is_abstention": is_abstention(value),
            # LongMemEval's metrics of retrieval count no other evidence.
            "user_evidence": [[s.start_char, s.end_char] for s in spans(value, "user:")],
        }
        return json_text(about)

    return QuestionLayout(
        question="question",
        references=lambda value: single(label_of(value, "answer")),
        question_type=lambda value: optional_text(value, "question_type"),
        metadata=metadata,
        evidence=lambda value: merged(spans(value)),
        asked_at="question_date",
        more=lambda value: {
            "only_judged": is_abstention(value) or value.get("question_type") in _ONLY_JUDGED,
            "task": "abstention" if is_abstention(value) else None,
        },
    )
