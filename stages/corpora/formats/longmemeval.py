"""LongMemEval (xiaowu0162/LongMemEval): one JSON list of questions, each with its own chat history.

A history is a document of sessions in the order of their dates. A session begins with a form feed
and a header, `[2023/05/30 (Tue) 21:48]`; each turn is a paragraph, `user: ...`. So pages break
between sessions (stages/index/paginate.py), and headers count no words (stages/text/words.py).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import ClassVar, Literal

from pipeline.core.rows import Span
from stages.corpora.reading import values
from stages.corpora.reading.corpus import FileCorpus, Loaded, bad_document
from stages.corpora.reading.questions import QuestionLayout
from stages.corpora.reading.values import BadInputError, Ids, Value, single
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
        with a session or turn that cannot be read is bad_input as a whole."""
        ids = Ids()
        for row in self.rows():
            if row.value is None:
                yield Loaded(bad_document(ids.of_place(row), row.detail(row.wrong)), ())
                continue
            content = [row.value.get(key) for key in _MAKES_ID]
            given = document_id, _ = ids.of_row(row, "question_id", content)
            try:
                sessions = _sessions_of(row.value)
                starts = accumulate((len(session.text) for session in sessions), initial=0)
                about = [
                    {"session_id": session.session_id, "date": session.date, "start_char": start}
                    for session, start in zip(sessions, starts, strict=False)
                ]
                text = "".join(session.text for session in sessions)
                metadata = values.json_text({"sessions": about})
                document = self.document(document_id, text, metadata=metadata)
            except BadInputError as wrong:
                sessions, document = [], bad_document(document_id, row.detail(wrong))
            yield Loaded(document, (_question_layout(sessions).read(row, document_id, given),))


def _sessions_of(value: Value) -> list[Session]:
    """The sessions that have turns, by date; in file order if any date cannot be read."""
    histories = values.list_of(value, "haystack_sessions")
    about = []  # for each key a value per session
    for key in ("haystack_dates", "haystack_session_ids"):
        texts = values.texts_of(value, key)
        if texts and len(texts) != len(histories):
            raise BadInputError(f"{len(histories)} sessions, {len(texts)} `{key}`; fix them")
        about.append(texts or [None] * len(histories))
    sessions = []
    for index, (turns, date, session_id) in enumerate(zip(histories, *about, strict=True)):
        lines, marked = list[str](), list[int]()
        where = f"haystack_sessions[{index}]"
        for turn, (role, content) in values.texts_within(turns, where, "role", "content"):
            text = f"{role}: {content}".replace(PAGE_BREAK, " ")
            marked += [len(lines)] if turn.get("has_answer") is True else []
            lines.append(_BLANK_LINES.sub("\n", text).strip())
        sessions.append(Session(session_id, date, lines, marked))
    with suppress(ValueError):
        sessions = sorted(sessions, key=lambda s: datetime.strptime(s.date or "", _DATE))
    return [session for session in sessions if session.turns]


def _evidence(sessions: Sequence[Session], value: Value, role: str = "") -> list[Span]:
    """The spans of the turns of a role that are marked as having the answer; without any mark, of
    all its turns in the answer sessions."""
    evidence_ids = values.texts_of(value, "answer_session_ids")
    is_marked = any(session.marked for session in sessions if session.session_id in evidence_ids)
    spans, at = list[Span](), 0
    for session in sessions:
        is_answer = session.session_id in evidence_ids
        at += len(session.header)
        for number, turn in enumerate(session.turns):
            is_evidence = is_answer and (number in session.marked or not is_marked)
            if is_evidence and turn.startswith(role):
                spans.append(Span(at, at + len(turn)))
            at += len(turn) + 2
    return spans


def _question_layout(sessions: Sequence[Session]) -> QuestionLayout:
    """`sessions`: the question's history, empty where it cannot be read."""

    def is_abstention(value: Value) -> bool:
        return (values.label_of(value, "question_id") or "").endswith("_abs")

    def metadata(value: Value) -> str:
        user_evidence = _evidence(sessions, value, "user:")
        about = {
            "answer_session_ids": values.texts_of(value, "answer_session_ids"),
            "is_abstention": is_abstention(value),
            # LongMemEval's metrics of retrieval count no other evidence.
            "user_evidence": [[span.start_char, span.end_char] for span in user_evidence],
        }
        return values.json_text(about)

    return QuestionLayout(
        question="question",
        references=lambda value: single(values.label_of(value, "answer")),
        question_type=lambda value: values.optional_text(value, "question_type"),
        metadata=metadata,
        evidence=lambda value: merged(_evidence(sessions, value)),
        asked_at="question_date",
        more=lambda value: {
            "only_judged": is_abstention(value) or value.get("question_type") in _ONLY_JUDGED,
            "task": "abstention" if is_abstention(value) else None,
        },
    )
