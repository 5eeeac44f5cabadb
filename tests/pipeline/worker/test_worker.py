"""The worker in this process, on a scripted engine: rows pulled, committed, replayed, lost. Its
event loop sends requests and reads replies; files and indexes are for threads."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from rank_bm25 import BM25Plus

from pipeline.asking.ask import Reader
from pipeline.core.calls import Call
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import AccountingError, EndedError, UsageError
from pipeline.core.rows import Question, UnitRows
from pipeline.engines.extractive import ExtractiveEngine
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import DocumentWork, work_on
from pipeline.worker.crashes import Crashes, InFlight, Placement
from pipeline.worker.executor import DocumentExecutor
from pipeline.worker.progress import Summary
from pipeline.worker.worker import Worker, execute_inline
from stages.index.gist_pages import GistPages
from stages.prompts.answer import AnswerQuestion, Passage
from stages.retrieve.look_up import BM25
from stages.retrieve.read_agent import ReadAgentP
from stages.tables.lookups import Lookup
from tests.pipeline.worker.test_crashes import ALONE, crash
from tests.support.reading import Listener, book, never, question, run
from tests.support.runs.small_run import SmallRun


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    return SmallRun(tmp_path)


class Rival(Listener):
    """An engine during whose first reply another worker finishes the same document; only then do
    the other replies come, as the rival would find them in the journal."""

    def __init__(self, small: SmallRun, then: Callable[[], None]) -> None:
        super().__init__(lambda request: "mine")
        self._rival, self._units, self._then = small.worker(), small.units()["d1"], then
        self._is_over = asyncio.Event()

    async def generate(self, request: Request) -> Reply:
        reply = await super().generate(request)
        if len(self.requests) == 1:
            await self._rival.work("d1", self._units, 120)
            self._then()
            self._is_over.set()
        await self._is_over.wait()
        return reply


def work_against(small: SmallRun, then: Callable[[], None]) -> Summary:
    """d1, worked on by us and, faster, by a rival; `then` happens when it has finished."""
    mine = replace(small.reader, engine=Rival(small, then))
    return asyncio.run(small.worker(mine).work("d1", small.units()["d1"], 120))


@pytest.mark.slow
@pytest.mark.parametrize("dies_before_its_gists", [False, True])
def test_who_loses_a_race_goes_on_with_what_stands(
    small: SmallRun, dies_before_its_gists: bool
) -> None:
    """The rival's calls are committed in any case; its gists may be ours to make, from them."""
    then = (lambda: small.shard("gists").unlink()) if dies_before_its_gists else (lambda: None)
    work_against(small, then)
    assert [gist.gist for gist in small.rows("gists")] == ["as it was"] * 3
    assert {answer.answer for answer in small.rows("answers")} == {"as it was"}
    for table in ("gists", "lookups", "answers", "ratings"):
        unit = small.shard(table).name.split(".")[0]
        calls_of_unit = small.shards.load(Call, small.step(table).id, unit)
        assert {call.engine for call in calls_of_unit} == {"scripted:script"}
    assert not [f for f in small.shards.warehouse.rglob("*.part")]


def test_rows_that_lost_are_forgotten(small: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our gists fail once the rival's are committed: they are nowhere, nothing rests on them."""
    fails = AsyncMock(side_effect=ZeroDivisionError("a gist of nothing"))
    summary = work_against(small, lambda: monkeypatch.setattr(GistPages, "run", fails))
    assert [gist.problem for gist in small.rows("gists")] == [None] * 3
    assert summary.problems == 0


def test_a_document_that_kills_its_worker_while_it_is_loaded_is_named(small: SmallRun) -> None:
    """Two processes died alone with d1, before any of its units."""
    item = "/".join(["d1", *sorted(u.unit for u in small.units()["d1"] if not u.is_done)])
    folder = small.folder / "warehouse" / "runs" / "night" / "in_flight" / "launch"
    for _ in range(2):
        small.work("d2")
        crash(folder, [item], ALONE)
    with pytest.raises(AccountingError, match=r"^d1: workers crash while they load its rows"):
        small.work("d1")


def test_a_reader_never_sees_the_gold(small: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Question] = []

    async def run(self: ReadAgentP, rows: UnitRows, ask: Any) -> list[Lookup]:
        seen.extend(rows.questions)
        return await sound(self, rows, ask)

    sound = ReadAgentP.run
    monkeypatch.setattr(ReadAgentP, "run", run)
    small.work()
    assert [(q.references, q.answer_index, q.evidence) for q in seen] == [((), None, ())] * 3


def test_a_last_sign_of_life_is_of_nobody(small: SmallRun) -> None:
    """Ray may end a worker when the driver is through, or when the next command has begun. Nor
    is one of anybody that is half a minute old or damaged."""
    folder = RunFolder(small.shards.warehouse, "night")
    folder.write_progress("launch", {"phase": "reading"})
    small.work()
    (beat,) = folder.path.glob("alive/*.json")
    old, damaged = beat.with_name("old.json"), beat.with_name("damaged.json")
    old.write_bytes(beat.read_bytes())
    os.utime(str(old), (time.time() - 31,) * 2)
    damaged.write_bytes(b'{"launch": ')
    state, workers = folder.at_work()
    assert state == {"launch": "launch", "phase": "reading"}
    assert [f"{worker['worker']}.json" for worker in workers] == [beat.name]
    beat.with_name("progress").write_bytes(b"[]")
    assert folder.at_work() == (None, [])
    folder.all_gone()
    small.work()
    assert list(folder.path.glob("alive/*.json"))
    assert folder.at_work() == (None, [])
    folder.write_progress("the next", {"phase": "reading"})
    assert folder.at_work() == (None, []) and folder.alive("the next") == []


@pytest.mark.parametrize(
    ("size", "together", "at_once"), [(1, None, 1), (10_000_000, None, 2), (10_000_000, 1, 1)]
)
def test_documents_in_flight_have_so_much_text_at_most(
    small: SmallRun, monkeypatch: pytest.MonkeyPatch, size: int, together: int | None, at_once: int
) -> None:
    """Or are so many, of those that were in flight when a worker died."""
    monkeypatch.setattr("pipeline.worker.worker._WORDS_IN_FLIGHT", size)
    monkeypatch.setattr(InFlight, "crashes", lambda self, item: Crashes(together))
    inside: list[DocumentExecutor] = []
    most: list[int] = []

    async def finish(self: DocumentExecutor) -> None:
        inside.append(self)
        await asyncio.sleep(0.1)
        most.append(len(inside))
        await sound(self)
        inside.remove(self)

    sound = DocumentExecutor.finish
    monkeypatch.setattr(DocumentExecutor, "finish", finish)
    small.work()
    assert max(most) == at_once
    assert len(small.rows("gists", "d1")) == len(small.rows("gists", "d2")) == 3


def test_storage_that_is_not_shared_is_named(tmp_path: Path) -> None:
    """As a machine sees it that has not mounted it."""
    worker = Worker(tmp_path / "w" / "runs" / "night", "launch", Placement("w"), [], None, 60.0)
    with pytest.raises(UsageError, match=r"w: not visible from .*; put it where all machines"):
        asyncio.run(worker.work("d1", [], 0))


def test_an_engine_that_starts_is_ended_with_the_run_inline(small: SmallRun) -> None:
    """Else Ctrl-C and the deadline would wait for the end of its start."""

    async def slow_start() -> Reader:
        await asyncio.sleep(600)
        raise AssertionError("not reached")

    def worker(placement: Placement) -> Worker:
        folder = small.shards.warehouse / "runs" / "night"
        return Worker(folder, "launch", placement, small.steps, slow_start, 60.0)

    work = work_on([DocumentWork("d1", small.units()["d1"], 1.0, 120)])
    began = time.monotonic()
    with pytest.raises(EndedError, match="the deadline"):
        execute_inline(worker, 2, work, lambda: EndedError("the deadline"), lambda outcome: None)
    assert time.monotonic() - began < 60


EVENTS = {"open", "os.listdir", "os.scandir", "os.link", "os.rename", "os.remove", "os.mkdir"}
LATER = "/in_flight"  # crash markers are small, and written by another hand


def test_a_worker_touches_its_files_in_threads(small: SmallRun, tmp_path: Path) -> None:
    """Its shards, its heartbeat, and the stop signal."""
    (tmp_path / "warehouse" / "runs" / "night" / "in_flight").mkdir(parents=True)
    on_the_loop, elsewhere = list[str](), list[str]()
    is_over = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if is_over or event not in EVENTS or not isinstance(arguments[0], str | bytes):
            return
        path = os.fsdecode(arguments[0])
        if path.startswith(str(tmp_path)) and LATER not in path:
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
