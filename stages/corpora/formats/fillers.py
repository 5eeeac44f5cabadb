"""The filler sessions of chat histories: which may be used, and a random draw of them."""

import hashlib
import json
from array import array
from collections.abc import Iterator
from random import Random
from typing import IO

from upath import UPath

from stages.corpora.chats.sessions import Session
from stages.corpora.formats.chat_files import chat_sessions
from stages.corpora.reading.containers import read_rows
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.row_checks import BadInputError

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
