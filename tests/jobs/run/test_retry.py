"""What failed is asked again: once by the same command, and by `gistmill retry` whatever it was."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from jobs.graph.preparation import prepare
from jobs.run.stored_run import run_again
from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies, SharedReplies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import UsageError
from pipeline.work.units import RETRY_TIMEOUTS_ONCE, RETRYABLE, RetryPolicy, Unit
from stages.prompts.readagent_memory import PageGist
from tests.runs.test_openai_run import NUM_ANSWERS, NUM_GISTS, words
from tests.support.command import one_line, own_process, sql, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.runs.small_run import SmallRun
from tests.support.runs.written_plan import units_of

ALL = RetryPolicy(frozenset(RETRYABLE))
GOOD = {
    "look_up_p": "I want to look up Page [1] to be sure",
    "rate_strict": "NO",
    "rate_permissive": "Yes, partially",
}
Bad = Callable[[Request], Reply | None]


class Engine:
    """Says what `bad` does, else a good reply; keeps what it was asked."""

    def __init__(self, small: SmallRun, bad: Bad) -> None:
        self.name, self.context_tokens = "engine", small.reader.engine.context_tokens
        self.count_tokens = small.reader.engine.count_tokens
        self._bad = bad
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> Reply:
        self.asked.append(request)
        good = Reply(text=GOOD.get(request.prompt, "as it was"), finish_reason="stop")
        return self._bad(request) or good

    @property
    def prompts(self) -> dict[str, int]:
        return dict(Counter(request.prompt for request in self.asked))


def work(small: SmallRun, bad: Bad, retries: RetryPolicy | None = RETRY_TIMEOUTS_ONCE) -> Engine:
    """All that is planned, by one worker; the engine that it asked."""
    engine = Engine(small, bad)
    reader = replace(small.reader, engine=engine)
    warehouse = small.config.warehouse
    prepared = prepare(small.resolved, warehouse, lambda line: None, retry_policy=retries)
    units = units_of(prepared)

    async def all_of_them() -> None:
        worker = small.worker(reader)
        await asyncio.gather(*(worker.work(d, planned, 0) for d, planned in units.items()))

    asyncio.run(all_of_them())
    return engine


def good(request: Request) -> Reply | None:
    return None


def of(prompt: str, says: str, reply: Reply) -> Bad:
    """This reply to a prompt that says so."""

    def bad(request: Request) -> Reply | None:
        is_it = request.prompt == prompt and says in request.messages[0]["content"]
        return reply if is_it else None

    return bad


NO_GIST = of("gist", "river1 paragraph one", Reply(text="", finish_reason="abort"))


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    return SmallRun(tmp_path)


def unit_of(small: SmallRun, table: str) -> Unit:
    step = small.step(table)
    (unit,) = [u for u in small.units()["d1"] if u.step_id == step.id]
    return unit


def problems(small: SmallRun, table: str, attempt: int) -> list[Any]:
    step, unit = small.step(table), unit_of(small, table)
    assert (unit.is_done, unit.attempt) == (True, attempt)
    return [row.problem for row in small.shards.load(step.writes, step.id, unit.unit, attempt)]


def files(small: SmallRun) -> dict[str, int]:
    found = (small.shards.warehouse / "tables").rglob("*.parquet")
    return {str(file): file.stat().st_mtime_ns for file in found}


def test_what_got_no_reply_is_asked_again_once_by_the_same_command(small: SmallRun) -> None:
    work(small, NO_GIST)
    assert problems(small, "gists", 1) == ["engine_failed", None, None]
    assert problems(small, "answers", 1) == ["upstream"] * 2
    before = files(small)
    again = work(small, good)
    # One gist, and what reads it: two questions with one reference each, rated by two prompts.
    assert again.prompts == {
        "gist": 1, "look_up_p": 2, "answer": 2, "rate_strict": 2, "rate_permissive": 2,
    }  # fmt: skip
    assert problems(small, "gists", 2) == [None] * 3
    assert problems(small, "answers", 1) == [None] * 2
    assert before.items() <= files(small).items(), "nothing that there was is touched"
    assert work(small, good).asked == []


def test_then_only_by_a_retry(small: SmallRun) -> None:
    work(small, NO_GIST)
    assert work(small, NO_GIST).prompts == {"gist": 1}
    assert work(small, NO_GIST).prompts == {}
    assert work(small, NO_GIST, ALL).prompts == {"gist": 1}
    assert problems(small, "gists", 3) == ["engine_failed", None, None]
    assert work(small, good, ALL).prompts["gist"] == 1
    assert problems(small, "gists", 4) == [None] * 3
    assert work(small, good, ALL).asked == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(text=" ", finish_reason="stop"), "unparseable"),
        (Reply(text="far too", finish_reason="length"), "truncated"),
    ],
)
def test_a_retry_asks_again_what_cannot_be_used(
    small: SmallRun, reply: Reply, problem: str
) -> None:
    work(small, of("answer", "number 1 ", reply))
    assert problems(small, "answers", 1) == [problem, None]
    assert work(small, good).asked == [], "not by the same command"
    again = work(small, good, ALL)
    # The other answer is replayed. Ratings read both, as one shard.
    assert again.prompts == {"answer": 1, "rate_strict": 2, "rate_permissive": 2}
    assert problems(small, "answers", 2) == [None, None]
    assert problems(small, "ratings", 1) == [None] * 4
    step = small.step("answers")
    kept = small.shards.recorded(step.id, small.shard("answers").name.split(".")[0], 2)
    assert kept is not None and [call.question_id for call in kept] == ["q1", "q2"]


def test_a_crashed_unit_is_tried_again(small: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: Any, rows: Any, ask: Any) -> Iterable[Any]:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(type(small.step("answers").stage), "run", run)
        work(small, good)
    assert problems(small, "answers", 1) == ["unit_failed"] * 2
    assert work(small, good).asked == []
    assert work(small, good, ALL).prompts["answer"] == 3
    assert problems(small, "answers", 2) == [None] * 2


def test_a_shared_reply_that_cannot_be_used_is_asked_again_once_for_all(
    small: SmallRun, tmp_path: Path
) -> None:
    """Two documents hold the same page; its gist was cut off, and the retry of each finds that."""
    shared = SharedReplies(UPath(tmp_path) / "shared")
    cut = Reply(text="cut", finish_reason="length")
    page = PageGist(page="the same page")

    def asked(bad: Bad, document_id: str, log: Replies) -> tuple[Engine, tuple[Call, ...]]:
        engine = Engine(small, bad)
        reader = replace(small.reader, engine=engine)
        ask = Ask(reader, "gist", document_id, replace(log, shared=shared))
        asyncio.run(ask(page, Subject(page_index=0), is_shared=True))
        return engine, ask.calls()

    calls = {d: asked(lambda request: cut, d, Replies()) for d in ("d1", "d2")}
    assert [len(engine.asked) for engine, _ in calls.values()] == [1, 0]
    again = {
        d: asked(good, d, Replies(attempt=2, earlier=own, problems=own))
        for d, (_, own) in calls.items()
    }
    assert [len(engine.asked) for engine, _ in again.values()] == [1, 0]
    assert [own[0].reply for _, own in again.values()] == ["as it was"] * 2


def test_words_that_retry_does_not_take() -> None:
    with pytest.raises(UsageError, match="retry takes warehouse, run"):
        run_again(["methods=bm25"])
    with pytest.raises(UsageError, match="problem=upstream: not asked again; write some of"):
        run_again(["problem=unparseable,upstream"])
    assert "no run there" in one_line(own_process("retry", "warehouse=/nowhere/at"))


@pytest.mark.slow
def test_the_command_asks_only_for_what_failed(tmp_path: Path) -> None:
    """Through a server that counts; four of fifteen replies are of no use."""

    def poor(body: dict[str, Any]) -> Answer:
        is_poor = "mill2" in body["messages"][0]["content"]
        return Answer(text="" if is_poor and "number 2" in str(body) else "a reply")

    with LoopbackServer(answer=poor) as server:
        keyless = ("engine.api_key_env=null", "max_problem_rate=1.0")
        command = words(tmp_path, server, *keyless, "run=night")
        succeeded(own_process(*command))
        assert len(server.asked) == NUM_GISTS + NUM_ANSWERS
        where = f"warehouse={tmp_path / 'warehouse'}"
        query = "select count(*) n from answers where problem = 'unparseable'"
        assert sql(tmp_path / "warehouse", query) == [{"n": 2}]
        server.asked.clear()
        succeeded(own_process(*command))
        assert server.asked == []
        server.answer = lambda body: Answer(text="a reply")
        found = json.loads(succeeded(own_process("retry", "run=night", where, "--json")))
        assert found["problems"] == {"before": {"unparseable": 2}, "after": {}}
        assert len(server.asked) == 2
    assert sql(tmp_path / "warehouse", query) == [{"n": 0}]
