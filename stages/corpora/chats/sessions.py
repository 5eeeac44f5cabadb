"""The sessions of a chat history, and the text that they are written as.

A history is a document of sessions in the order of their dates. A session begins with a form feed
and a header, `[2023/05/30 (Tue) 21:48]`; each turn is a paragraph, `user: ...`. So a session's end
is a page break (stages/index/paginate.py), and its header counts no words (stages/text/words.py).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stages.corpora.reading.corpus_row import BadInputError, kind_of, text_of
from stages.text.chat_text import NO_DATE
from stages.text.words import PAGE_BREAK

_DATE = "%Y/%m/%d (%a) %H:%M"
_BLANK_LINES = re.compile(r"\n\s*\n")
_NOT_IN_HEADERS = re.compile(r"[\[\]\s]+")


@dataclass(frozen=True, slots=True)
class Session:
    """`turns`: each as `role: content`; `marked`: indexes of the turns that contain the answer."""

    session_id: str | None
    date: str | None
    turns: Sequence[str]
    marked: Sequence[int]

    @property
    def when(self) -> datetime | None:
        """The date; None where it is not in the format of the published files."""
        try:
            return datetime.strptime(self.date or "", _DATE)
        except ValueError:
            return None


def session_of(turns: Any, place: str, date: str | None, session_id: str | None) -> Session:
    """Read a list of objects with `role`, `content` and perhaps `has_answer`.

    `place`: where the list is in its row, for messages. Raises BadInputError.
    """
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
    """The sessions that have turns, earliest first; in the given order where a date cannot be
    read."""
    dated = [(session.when, session) for session in sessions]
    if all(when for when, _ in dated):
        dated.sort(key=lambda pair: pair[0] or datetime.min)
    return [session for _, session in dated if session.turns]


def written(session: Session) -> str:
    """The session as it is in the document's text."""
    return _header(session) + "\n\n".join(session.turns) + "\n\n"


def _header(session: Session) -> str:
    date = _NOT_IN_HEADERS.sub(" ", session.date or NO_DATE).strip()
    return f"{PAGE_BREAK}[{date}]\n"


def starts(sessions: Sequence[Session]) -> list[int]:
    """The position in the text where each session begins."""
    found = [0]
    for session in sessions:
        found.append(found[-1] + len(written(session)))
    return found[:-1]


def evidence_turns(
    sessions: Sequence[Session], evidence_ids: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Where each turn begins that is marked as containing the answer, and the turn; without marks,
    all turns of the answer sessions."""
    is_marked = any(session.marked for session in sessions if session.session_id in evidence_ids)
    for session, start in zip(sessions, starts(sessions), strict=True):
        if session.session_id not in evidence_ids:
            continue
        at = start + len(_header(session))
        for number, turn in enumerate(session.turns):
            if (number in session.marked or not is_marked) and turn:
                yield at, turn
            at += len(turn) + 2
