"""A worker's event loop sends requests and reads replies; files and indexes are for threads."""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from rank_bm25 import BM25Plus

from pipeline.core.engine import Request
from pipeline.engines.extractive import ExtractiveEngine
from stages.prompts.answer import AnswerQuestion, Passage
from stages.retrieve.look_up import BM25
from tests.support.reading import book, never, question, run
from tests.support.runs.small_run import SmallRun

_EVENTS = {"open", "os.listdir", "os.scandir", "os.link", "os.rename", "os.remove", "os.mkdir"}
_LATER = "/in_flight"  # crash markers are small, and written by another hand


def test_a_worker_touches_its_files_in_threads(tmp_path: Path) -> None:
    """Its shards, its heartbeat, and the stop signal."""
    small = SmallRun(tmp_path)
    (tmp_path / "warehouse" / "runs" / "night" / "in_flight").mkdir(parents=True)
    on_the_loop, elsewhere = list[str](), list[str]()
    is_over = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if is_over or event not in _EVENTS or not isinstance(arguments[0], str | bytes):
            return
        path = os.fsdecode(arguments[0])
        if path.startswith(str(tmp_path)) and _LATER not in path:
            is_on_the_loop = asyncio._get_running_loop() is not None
            (on_the_loop if is_on_the_loop else elsewhere).append(f"{event} {path}")

    sys.addaudithook(hook)  # it stays for as long as the process
    small.work()
    is_over = True
    assert small.rows("answers"), "it did its work"
    assert on_the_loop == []
    assert len(elsewhere) > 50


def test_what_takes_long_is_done_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of a book takes tenths of a second, and so do the sentences that an extractive
    reply is made of."""
    threads: list[threading.Thread] = []
    init = BM25Plus.__init__

    def built(self: BM25Plus, *given: Any, **named: Any) -> None:
        threads.append(threading.current_thread())
        init(self, *given, **named)

    monkeypatch.setattr(BM25Plus, "__init__", built)
    bm25 = BM25(top_k=1, bm25="plus_on_stems")
    (row,), _ = run(bm25, book(["The bell rang.", "A cat slept."], questions=[question()]), never())
    assert row.used == (0,)
    passages = (Passage("text", None, "The loop's bell rang. A cat slept beside it for hours."),)
    prompt = AnswerQuestion(passages, "Which bell rang?", (), answer_words=30)
    request = Request(prompt="answer", fields=prompt, messages=(), max_reply_tokens=100)
    reply = asyncio.run(ExtractiveEngine().generate(request))
    assert "bell rang" in reply.text
    assert len(threads) >= 2 and threading.main_thread() not in threads
