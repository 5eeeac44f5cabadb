"""The worker in this process, on a scripted engine: rows pulled, committed, replayed, lost."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stages.retrieve.by_model import ReadAgentP
from upath import UPath

from pipeline.engine import Reply, Request
from pipeline.errors import AccountingError, EngineError, UsageError
from pipeline.executor import Summary
from pipeline.rows import Call, Gist, Lookup
from pipeline.stage import DocumentRows
from pipeline.store.runs import RunFolder
from pipeline.worker import Worker
from stages.index.gist import GistPages
from tests.bench import RULES, Bench
from tests.small_corpus import document, question, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def calls(summaries: Sequence[Summary]) -> dict[str, int]:
    """Requests to the engine by stage."""
    found: dict[str, int] = {}
    for summary in summaries:
        for step_id, number in summary.asked.items():
            name = step_id.rpartition("-")[0]
            found[name] = found.get(name, 0) + number
    return {name: number for name, number in found.items() if number}


def test_a_document_is_walked_from_pages_to_ratings(bench: Bench) -> None:
    summaries = bench.work()
    # 6 pages; 3 questions with one reference each, rated by two prompts.
    assert calls(summaries) == {"gist": 6, "look_up": 3, "answer": 3, "rate": 6}
    by_document = {summary.document_id: summary for summary in summaries}
    # d1: 3 pages, 3 gists, 2 look-ups, answers and ratings, and 2 x (4 metrics + 4 of evidence).
    assert by_document["d1"].units == 6
    assert by_document["d1"].rows == 3 + 3 + 2 + 2 + 2 + 16
    assert sum(summary.problems for summary in summaries) == 0
    assert [page.num_words for page in bench.rows("pages")] == [40, 40, 40]
    assert [row.used for row in bench.rows("lookups")] == [(1,), (1,)]
    assert [row.answer for row in bench.rows("answers")] == ["as it was", "as it was"]
    assert [(r.strict, r.permissive) for r in bench.rows("ratings", "d2")] == [("no", "partially")]


def test_what_is_done_is_left_alone(bench: Bench) -> None:
    bench.work()
    before = contents(bench.shards.warehouse / "tables")
    again = bench.work()
    assert [(s.units, s.rows, s.asked, s.prompt_tokens) for s in again] == [(0, 0, {}, 0)] * 2
    assert contents(bench.shards.warehouse / "tables") == before


def contents(folder: UPath) -> dict[str, tuple[int, int]]:
    """Every file there, with its size and time."""
    stats = {str(path): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


@pytest.mark.parametrize("table", ["gists", "lookups", "answers", "ratings"])
def test_a_unit_is_made_again_from_its_calls(bench: Bench, table: str) -> None:
    bench.work()
    shard = bench.shard(table)
    rows = bench.rows(table)
    shard.unlink()
    again = bench.work("d1")
    assert calls(again) == {}
    assert bench.rows(table) == rows
    assert again[0].units == 1, "nothing that follows is touched"


def test_without_its_calls_a_unit_is_asked_again(bench: Bench) -> None:
    bench.work()
    for shard in (bench.shard("answers"), bench.shard("calls", of="answers")):
        shard.unlink()
    assert calls(bench.work("d1")) == {"answer": 2}


def test_units_are_pulled_by_what_needs_them(bench: Bench) -> None:
    """Only d1's answers are wanted; what they are made from is made, the rest is not."""
    units = bench.units()["d1"]
    wanted = {bench.step(t).id for t in ("documents", "questions", "pages", "gists", "lookups")}
    wanted.add(bench.step("answers").id)
    left_out = [replace(u, is_done=u.is_done or u.step_id not in wanted) for u in units]
    asyncio.run(bench.worker().work("d1", left_out))
    assert len(bench.rows("answers")) == 2
    assert not bench.shard("ratings").exists()


class Rival:
    """An engine during whose first reply another worker finishes the same document."""

    def __init__(self, bench: Bench, then: Callable[[], None]) -> None:
        self._rival, self._units, self._then = bench.worker(), bench.units()["d1"], then
        self._first = True
        self.name = "mine"
        self.context_tokens = bench.reader.engine.context_tokens
        self.count_tokens = bench.reader.engine.count_tokens

    async def generate(self, request: Request) -> Reply:
        if self._first:
            self._first = False
            await self._rival.work("d1", self._units)
            self._then()
        return Reply(text="mine", finish_reason="stop")


def work_against(bench: Bench, then: Callable[[], None]) -> Summary:
    """d1, worked on by us and, faster, by a rival; `then` happens when it has finished."""
    mine = replace(bench.reader, engine=Rival(bench, then))
    worker = bench.worker(mine)
    return asyncio.run(worker.work("d1", bench.units()["d1"]))


@pytest.mark.parametrize("dies_before_its_gists", [False, True])
def test_who_loses_a_race_goes_on_with_what_stands(
    bench: Bench, dies_before_its_gists: bool
) -> None:
    """The rival's calls stand in any case; its gists may be for us to make, from its calls."""
    then = (lambda: bench.shard("gists").unlink()) if dies_before_its_gists else (lambda: None)
    work_against(bench, then)
    assert [gist.gist for gist in bench.rows("gists")] == ["as it was"] * 3
    assert {answer.answer for answer in bench.rows("answers")} == {"as it was"}
    for table in ("gists", "lookups", "answers", "ratings"):
        own = bench.shards.load(Call, bench.step(table).id, bench.shard(table).name.split(".")[0])
        assert {call.engine for call in own} == {"scripted:script"}
    assert not [f for f in bench.shards.warehouse.rglob("*.part")]


def test_rows_that_lost_are_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our gists fail once the rival's stand: they are nowhere, and nothing is made from them."""
    summary = work_against(bench, lambda: break_gists(monkeypatch))
    assert [gist.problem for gist in bench.rows("gists")] == [None] * 3
    assert summary.problems == 0


def break_gists(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: GistPages, rows: DocumentRows, ask: object) -> list[Gist]:
        if rows.document.document_id == "d1":
            raise ZeroDivisionError("a gist of nothing")
        return await sound(self, rows, ask)  # type: ignore[arg-type]  # any ask

    sound = GistPages.run
    monkeypatch.setattr(GistPages, "run", run)


def test_an_exception_becomes_rows_and_others_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_gists(monkeypatch)
    summaries = bench.work()
    gists = bench.rows("gists")
    assert [(gist.page_index, gist.gist, gist.problem) for gist in gists] == [
        (index, None, "unit_failed") for index in range(3)
    ]
    assert all("ZeroDivisionError: a gist of nothing" in gist.detail for gist in gists)
    assert all('raise ZeroDivisionError("a gist' in gist.detail for gist in gists), "a traceback"
    for table in ("lookups", "answers", "ratings"):
        assert [row.problem for row in bench.rows(table)] == ["upstream", "upstream"]
    assert {score.problem for score in bench.rows("scores")} == {"upstream"}
    assert [gist.problem for gist in bench.rows("gists", "d2")] == [None] * 3
    assert [answer.problem for answer in bench.rows("answers", "d2")] == [None]
    assert calls(summaries) == {"gist": 3, "look_up": 1, "answer": 1, "rate": 2}


def test_a_unit_fails_as_a_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def turns(self: ReadAgentP, rows: DocumentRows, *rest: Any) -> list[Lookup]:
        found = await sound(self, rows, *rest)
        if found[0].question_id == "q2":
            raise KeyError("q2")
        return found

    sound = ReadAgentP.turns
    monkeypatch.setattr(ReadAgentP, "turns", turns)
    bench.work()
    assert [row.problem for row in bench.rows("lookups")] == ["unit_failed"] * 2
    assert [row.problem for row in bench.rows("lookups", "d2")] == [None]


def test_a_bad_document_leads_to_upstream_rows(bench: Bench) -> None:
    texts = [document(1), {**document(2), "text": ""}]
    write(bench.folder / "corpus", texts, [question(1, of=1), question(3, of=2)])
    bench.work()
    units = {unit.step_id: unit for unit in bench.units()["d2"]}
    assert bench.step("pages").id not in units
    for table in ("lookups", "answers", "ratings"):
        (row,) = bench.rows(table, "d2")
        assert row.problem == "upstream"
        assert row.detail, "it says why"
    assert [row.problem for row in bench.rows("answers", "d1")] == [None]


def test_a_dead_engine_ends_the_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [{"prompt": "answer", "match": "number 1 ", "die": True}, *RULES])
    with pytest.raises(EngineError, match="die at answer"):
        bench.work("d1")
    assert len(bench.rows("gists")) == 3, "what stood before stays"
    assert not bench.shard("answers").exists()
    assert not bench.shard("calls", of="answers").exists()


def test_rows_that_do_not_match_their_inputs_end_the_work(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(self: GistPages, rows: DocumentRows, ask: object) -> list[Gist]:
        return []

    monkeypatch.setattr(GistPages, "run", run)
    with pytest.raises(AccountingError, match="d1: gists do not match pages"):
        bench.work("d1")
    assert not bench.shard("gists").exists()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"finish_reason": "abort"}, "engine_failed"),
        ({"reply": "too long", "finish_reason": "length"}, "truncated"),
        ({"reply": " "}, "unparseable"),
    ],
)
def test_what_a_model_does_wrong_is_a_row(
    tmp_path: Path, rule: Mapping[str, Any], problem: str
) -> None:
    bench = Bench(tmp_path, [{"prompt": "answer", "match": "number 1 ", **rule}, *RULES])
    summaries = bench.work()
    assert [row.problem for row in bench.rows("answers")] == [problem, None]
    assert [row.problem for row in bench.rows("ratings")] == ["upstream", None]
    by_document = {summary.document_id: summary.problems for summary in summaries}
    assert by_document["d2"] == 0
    assert by_document["d1"] >= 2


def test_a_reader_never_sees_the_gold(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[DocumentRows] = []

    async def run(self: ReadAgentP, rows: DocumentRows, ask: object) -> list[Lookup]:
        seen.append(rows)
        return await sound(self, rows, ask)  # type: ignore[arg-type]  # any ask

    sound = ReadAgentP.run
    monkeypatch.setattr(ReadAgentP, "run", run)
    bench.work()
    questions = [question for rows in seen for question in rows.questions]
    assert len(questions) == 3
    assert {(q.references, q.answer_index, q.evidence) for q in questions} == {((), None, ())}


def test_a_worker_gives_a_sign_of_life(bench: Bench) -> None:
    bench.work()
    (file,) = (bench.shards.warehouse / "runs" / "night" / "alive").glob("*.json")
    assert json.loads(file.read_text())["worker"] == file.stem


def test_a_last_sign_of_life_is_of_nobody(bench: Bench) -> None:
    """Ray may end a worker when the driver is through, or when the next command has begun."""
    folder = RunFolder(bench.shards.warehouse, "night")
    folder.write_progress("launch", {"phase": "reading"})
    bench.work()
    state, workers = folder.at_work()
    assert (state, len(workers)) == ({"launch": "launch", "phase": "reading"}, 1)
    folder.all_gone()
    bench.work()
    assert list(folder.path.glob("alive/*.json"))
    assert folder.at_work() == (None, [])
    folder.write_progress("the next", {"phase": "reading"})
    assert folder.at_work() == (None, []) and folder.alive("the next") == []


class _Watched:
    """The engine, and of how many documents it was asked for gists at once at the most."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.name, self.context_tokens = engine.name, engine.context_tokens
        self.inside: list[str] = []
        self.most = 0

    async def count_tokens(self, messages: Any) -> int:
        return int(await self._engine.count_tokens(messages))

    async def generate(self, request: Request) -> Reply:
        number = re.search(r"mill(\d)", request.messages[0]["content"])
        self.inside.append(number[1] if number and request.prompt == "gist" else "")
        self.most = max(self.most, len(set(self.inside) - {""}))
        reply: Reply = await self._engine.generate(request)
        self.inside.pop(0)
        return reply


@pytest.mark.parametrize(("size", "at_once"), [(1, 1), (10_000_000, 2)])
def test_documents_in_hand_have_so_much_text_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, at_once: int
) -> None:
    monkeypatch.setattr("pipeline.worker._TEXT_IN_HAND", size)
    bench = Bench(tmp_path, [{"prompt": "gist", "reply": "a gist", "seconds": 0.5}, *RULES])
    engine = _Watched(bench.reader.engine)
    bench.reader = replace(bench.reader, engine=engine)
    bench.work()
    assert engine.most == at_once
    assert len(bench.rows("gists", "d1")) == len(bench.rows("gists", "d2")) == 3


def test_storage_that_is_not_shared_is_named(tmp_path: Path) -> None:
    """As a machine sees it that has not mounted it."""
    made = Worker(tmp_path / "w" / "runs" / "night", "launch", "name", [], None, 60.0)
    with pytest.raises(UsageError, match=r"w: not to be seen from .*; put it where all machines"):
        asyncio.run(made.work("d1", []))
