"""All calls of a run as they were stored, to be compared with what an engine was asked."""

from dataclasses import asdict
from typing import Any

import gistmill
from pipeline.core.engine import Request
from pipeline.files.storage import AnyPath
from pipeline.store import connect


def shown(warehouse: AnyPath, run: str | None = None) -> list[dict[str, Any]]:
    """Those of every document and question; each row of the view `calls` is there once."""
    with connect(warehouse, run) as connection:
        rows = connection.execute("select step_id, unit, call_index from calls").fetchall()
        documents = connection.execute("select document_id from documents order by all").fetchall()
        questions = connection.execute(
            "select question_id from questions order by document_id, question_id"
        ).fetchall()
    found = [c for (name,) in documents for c in gistmill.sent(warehouse, run, document=name)]
    found += [c for (name,) in questions for c in gistmill.sent(warehouse, run, question=name)]
    assert sorted((c["step_id"], c["unit"], c["call_index"]) for c in found) == sorted(rows)
    return found


def as_shown(call: dict[str, Any]) -> tuple[Any, ...]:
    """What identifies a request, of a call."""
    messages = tuple((message["role"], message["content"]) for message in call["messages"])
    constraint = call["constraint"]
    return (
        call["prompt"], messages, call["seed"], call["temperature"],
        call["max_reply_tokens"], call["attempt"],
        constraint and (tuple(constraint["choices"]), constraint["regex"]),
    )  # fmt: skip


def as_asked(request: Request) -> tuple[Any, ...]:
    """The same, of a request that reached an engine."""
    names = ("prompt", "messages", "seed", "temperature", "max_reply_tokens", "attempt")
    constraint = request.constraint and asdict(request.constraint)
    return as_shown({**{n: getattr(request, n) for n in names}, "constraint": constraint})
