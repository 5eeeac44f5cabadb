"""Chat sessions in the formats they are published in.

A session is a list of turns, or an object with such a list and perhaps an id; a row of a
LongMemEval file gives the sessions of its history. A turn is LongMemEval's `role` and `content`,
ShareGPT's `from` and `value`, or a string as in UltraChat, where user and assistant alternate.
"""

from collections.abc import Iterator
from typing import Any

from stages.corpora.chats.sessions import Session, session_of
from stages.corpora.formats.longmemeval import sessions_of
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.row_checks import BadInputError, label_of, texts_of

_TURNS = ("session", "turns", "messages", "conversation", "conversations", "data")
_IDS = ("session_id", "id")
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant"}


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
