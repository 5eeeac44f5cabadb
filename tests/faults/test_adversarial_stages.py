"""Replies that no model should give, through every stage that asks: a worker commits the rows of
whole runs, and none of them says more than the replies do."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unicodedata import decimal, normalize

import pytest

import gistmill
from pipeline.core.prompts import PROMPTS
from pipeline.core.registry import import_installed
from pipeline.store import connect
from pipeline.store.sql.accounts import accounts
from pipeline.work.stage import STAGES
from stages.tables.pages import Embedding
from tests.support.runs.hostile_rows import NEVER, READ
from tests.support.runs.hostile_run import HostileRun, book_words, chat_words

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

import_installed()

HALF = re.compile(r"[\ud800-\udfff]")  # of a surrogate pair, which no file can hold
MARKS = re.compile("(?i:think)|```")  # what is taken off a reply, in part


def finished(folder: Path, words: list[str], seed: int, is_constrained: bool = False) -> HostileRun:
    """A run whose rows say nothing that its replies do not, and whose replies are all stored."""
    run = HostileRun(folder, words, seed, is_constrained)
    run.finish()
    for row in (row for rows in run.rows().values() for row in rows):
        assert row.problem != "unit_failed", row.detail
    with connect(run.config.warehouse, "night") as connection:
        assert all(step.not_done == 0 for step in accounts(connection))
        for name, statement in NEVER.items():
            assert connection.execute(statement).fetchall() == [], name
        for name, statement in READ.items():
            for value, replies in connection.execute(statement).fetchall():
                assert any(value in plain(reply) for reply in replies), (name, value, replies)
    # Every reply is stored once, as it was sent but for half surrogates, thinking and a fence.
    sent = Counter(
        (request.prompt, HALF.sub("\ufffd", reply.text), reply.finish_reason, reply.reply_tokens)
        for request, reply in run.engine.sent
        if not MARKS.search(reply.text)
    )
    stored = [call for call in run.calls() if not call.is_shared]
    assert len(stored) == len(run.engine.sent)
    assert sent <= Counter((c.prompt, c.reply, c.finish_reason, c.reply_tokens) for c in stored)
    return run


def plain(reply: str) -> str:
    """In lower case, without quotes (JSON escapes them) and marks, with the digits of all scripts
    as our own."""
    text = re.sub(r"\\?\"|['`*_]", "", normalize("NFKC", reply).lower())
    return "".join(str(decimal(char)) if char.isdecimal() else char for char in text)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[HostileRun]:
    book, movie, chat, once = (tmp_path_factory.mktemp("hostile") for _ in range(4))
    walks = "methods=readagent_s(max_pages=3),memwalker_words(words=50,max_children=2)"
    movie_words = [*book_words(movie, 8, 4)[:-1], walks, "family=narrativeqa_movie"]
    appended = "methods=readagent_p(max_pages=2,layout=appended)"
    once_words = [*book_words(once, 6, 4)[:-1], appended, "memory=read_once"]
    return [
        finished(book, book_words(book, 12, 4), seed=4),
        finished(movie, movie_words, seed=2, is_constrained=True),
        finished(chat, chat_words(chat, 5), seed=3),
        finished(once, once_words, seed=5),
    ]


def test_every_stage_and_every_prompt_that_asks_is_in_a_run(runs: list[HostileRun]) -> None:
    """But for stages that need an embedder."""
    used = {type(step.stage) for run in runs for step in run.steps}
    asking = [s for s in STAGES.values() if s.prompts and Embedding not in s.reads]
    ours = [stage for stage in asking if stage.__module__.startswith("stages.")]
    assert [stage.label() for stage in ours if stage not in used] == []
    asked = {call.prompt for run in runs for call in run.calls()}
    assert {n for n, p in PROMPTS.items() if p.__module__.startswith("stages.")} <= asked
    assert sum(len(run.engine.sent) for run in runs) > 450


def test_the_calls_make_the_same_rows_again(runs: list[HostileRun]) -> None:
    """Without its rows a run makes them again of its calls, and asks nothing."""
    for run in runs:
        before, num_sent = run.rows(), len(run.engine.sent)
        for folder in (Path(run.config.warehouse) / "tables").iterdir():
            if folder.name not in ("documents", "questions", "calls"):
                shutil.rmtree(folder)
        run.finish()
        assert len(run.engine.sent) == num_sent
        assert run.rows() == before


def shown(run: HostileRun) -> list[dict[str, Any]]:
    """The calls of every document and question; each row of the view `calls` is there once."""
    calls = []
    with connect(run.config.warehouse, "night") as connection:
        rows = connection.execute("select step_id, unit, call_index from calls").fetchall()
        for of in ("document", "question"):
            names = connection.execute(f"select {of}_id from {of}s order by all").fetchall()
            for (name,) in names:
                calls += gistmill.sent(run.config.warehouse, "night", **{of: name})
    assert sorted((c["step_id"], c["unit"], c["call_index"]) for c in calls) == sorted(rows)
    return calls


def as_sent(call: Mapping[str, Any]) -> tuple[Any, ...]:
    """What identifies a request."""
    messages = tuple((message["role"], message["content"]) for message in call["messages"])
    constraint = call["constraint"]
    return (
        call["prompt"], messages, call["seed"], call["temperature"],
        call["max_reply_tokens"], call["attempt"],
        constraint and (tuple(constraint["choices"]), constraint["regex"]),
    )  # fmt: skip


def test_every_call_is_shown_as_it_was_sent(runs: list[HostileRun]) -> None:
    for run in runs:
        calls = shown(run)
        asked = Counter(as_sent(asdict(request)) for request, _ in run.engine.sent)
        assert Counter(as_sent(call) for call in calls if not call["is_shared"]) == asked
        assert {as_sent(call) for call in calls if call["is_shared"]} <= set(asked)


@pytest.mark.chaos
def test_ten_thousand_replies_through_every_stage(tmp_path: Path) -> None:
    num_replies, seed = 0, 10
    while num_replies < 10_000:
        for is_book in (True, False):
            folder = tmp_path / f"{seed}"
            folder.mkdir()
            words = book_words(folder, 24, 12) if is_book else chat_words(folder, 20)
            run = finished(folder, words, seed, is_constrained=seed % 3 == 0)
            num_replies, seed = num_replies + len(run.engine.sent), seed + 1
