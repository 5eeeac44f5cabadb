"""All calls of a run as `Sent` shows them, to be compared with what an engine was asked."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from jobs.trace.sent import Sent, SentCall
from pipeline.core.engine import Request
from pipeline.files.place import AnyPath
from pipeline.store import connect


def shown(warehouse: AnyPath, run: str | None = None, plugins: str | None = None) -> list[SentCall]:
    """Those of every document and question; each row of the view `calls` is there once."""
    with connect(warehouse, run) as connection:
        rows = connection.execute("select step_id, unit, call_index from calls").fetchall()
        documents = connection.execute("select document_id from documents").fetchall()
        questions = connection.execute(
            "select question_id from questions order by document_id, question_id"
        ).fetchall()
    sent = Sent(warehouse, run, plugins)
    found = [one for (name,) in documents for one in sent.of_document(name)]
    found += [one for (name,) in questions for one in sent.of_question(name)]
    own = [(one.call["step_id"], one.call["unit"], one.call["call_index"]) for one in found]
    assert sorted(own) == sorted(rows)
    return found


def problems(found: Iterable[SentCall]) -> dict[str, int]:
    """Why calls are not shown, and how many."""
    return dict(Counter(one.why_not for one in found if one.why_not is not None))


def as_shown(one: SentCall) -> tuple[Any, ...]:
    """What identifies a request, of a call."""
    assert one.messages is not None and one.settings is not None
    (message,) = one.messages
    settings = one.settings
    constraint = settings["constraint"]
    return (
        one.call["prompt"], message["role"], message["content"], settings["seed"],
        settings["temperature"], settings["max_reply_tokens"], one.call["attempt"],
        constraint and (constraint["choices"], constraint["regex"]),
    )  # fmt: skip


def as_asked(request: Request) -> tuple[Any, ...]:
    """The same, of a request that reached an engine."""
    (message,) = request.messages
    constraint = request.constraint
    return (
        request.prompt, message["role"], message["content"], request.seed, request.temperature,
        request.max_reply_tokens, request.attempt,
        constraint and (constraint.choices, constraint.regex),
    )  # fmt: skip
