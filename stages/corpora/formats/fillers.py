"""The filler sessions of chat histories: which may be used, and a random draw of them.

A file of fillers has a session a row: a list of turns, or an object with such a list and perhaps an
id; a row of a LongMemEval file gives the sessions of its history. A turn is LongMemEval's `role`
and `content`, ShareGPT's `from` and `value`, or a string as in UltraChat, where user and assistant
alternate.
"""

import hashlib
import json
from array import array
from collections.abc import Iterator
from random import Random
from typing import IO, Any

from upath import UPath

from stages.corpora.chats.sessions import Session, session_of
from stages.corpora.formats.longmemeval import sessions_of
from stages.corpora.reading.containers import read_rows
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.row_checks import BadInputError, label_of, texts_of

_TURNS = ("session", "turns", "messages", "conversation", "conversations", "data")
_IDS = ("session_id", "id")
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant"}
_EVIDENCE = "answer_"  # ids of evidence sessions begin so in the published files


class Fillers:
    """The sessions of one file, each kept once.

    In memory there are eight bytes per session and, while they are added, a hash of each; the
    sessions are in `file`, so that any container (gzip, Parquet, a URL) will do.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._starts = array("Q")
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, path: UPath, evidence: "Evidence") -> Iterator[tuple[Row, str]]:
        """Add the sessions of the file; yields each row that cannot be read with its `detail`.

        Left out are evidence sessions, empty ones, and copies of one that was added before.
        Raises UsageError where the file cannot be opened.
        """
        for row in read_rows(path):
            try:
                for session in chat_sessions(row):
                    if session.turns and not evidence.has(session):
                        self.add(session)
            except BadInputError as wrong:
                yield row, row.detail(wrong)
        self._known.clear()

    def add(self, session: Session) -> None:
        """Keep the turns and the id of a session, unless one with the same turns is kept."""
        made = digest(session)
        if made in self._known:
            return
        self._known.add(made)
        name = session.session_id or f"filler_{len(self)}"
        self._starts.append(self._file.tell())
        self._file.write(json.dumps([name, list(session.turns)]).encode() + b"\n")

    def drawn(self, draw: Random) -> Iterator[Session]:
        """Yield sessions without date in random order; all of them before any comes again."""
        while True:
            for index in _shuffled(len(self), draw):
                self._file.seek(self._starts[index])
                name, turns = json.loads(self._file.readline())
                yield Session(name, None, turns, ())


class Evidence:
    """The evidence sessions of a corpus's questions, by id and content: none may be a filler."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._contents: set[bytes] = set()

    def add(self, session: Session) -> None:
        """Remember an evidence session."""
        if session.session_id:
            self._ids.add(session.session_id)
        self._contents.add(digest(session))

    def has(self, session: Session) -> bool:
        """True if it is one of them, or named as one: `answer_...`."""
        name = session.session_id or ""
        is_named = name.startswith(_EVIDENCE) or name in self._ids
        return is_named or digest(session) in self._contents


def digest(session: Session) -> bytes:
    """A hash of what is said in the session."""
    return hashlib.sha256(json.dumps(list(session.turns)).encode()).digest()[:16]


def _shuffled(size: int, draw: Random) -> Iterator[int]:
    """All indexes below `size` in random order; keeps only those that were swapped (Fisher-Yates),
    as a history seldom needs the whole file."""
    swapped: dict[int, int] = {}
    for index in range(size):
        other = draw.randrange(index, size)
        yield swapped.get(other, other)
        swapped[other] = swapped.pop(index, index)


def chat_sessions(row: Row) -> Iterator[Session]:
    """Yield the sessions of a row; of a LongMemEval row, those that are not its evidence.

    Raises BadInputError for a row that cannot be read.
    """
    if row.value is None and row.entries is None:
        raise BadInputError(row.wrong)
    if row.value is None:
        yield _read(row.entries, "turns")
    elif "haystack_sessions" in row.value:
        evidence = texts_of(row.value, "answer_session_ids")
        found = sessions_of(row.value)
        yield from (session for session in found if session.session_id not in evidence)
    else:
        yield _of_object(row.value)


def _of_object(value: dict[str, Any]) -> Session:
    key = next((key for key in _TURNS if value.get(key) is not None), None)
    if key is None:
        raise BadInputError(f"no turns, under {' or '.join(_TURNS)}; add them")
    name = next((key for key in _IDS if value.get(key) is not None), _IDS[0])
    return _read(value[key], f"`{key}`", label_of(value, name))


def _read(turns: Any, place: str, name: str | None = None) -> Session:
    named = [_named(turn, n) for n, turn in enumerate(turns)] if isinstance(turns, list) else turns
    return session_of(named, place, None, name)


def _named(turn: Any, number: int) -> Any:
    """The turn with LongMemEval's keys; anything else as it is."""
    if isinstance(turn, str):
        return {"role": "assistant" if number % 2 else "user", "content": turn}
    if not isinstance(turn, dict) or "from" not in turn:
        return turn
    role = turn["from"]
    return {"role": _ROLES.get(role, role) if isinstance(role, str) else role,
            "content": turn.get("value")}  # fmt: skip
