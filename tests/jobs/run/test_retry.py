"""What failed is asked again: once by the same command, and by `gistmill retry` whatever it was."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from upath import UPath

from jobs.graph.preparation import prepare
from jobs.run.stored_run import run_again
from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies, SharedReplies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import UsageError
from pipeline.engines.scripted import ScriptedEngine
from pipeline.work.units import RETRY_TIMEOUTS_ONCE, RETRYABLE, RetryPolicy
from stages.prompts.readagent_memory import PageGist
from tests.jobs.run.test_run_lock import shards
from tests.runs.test_openai_run import NUM_ANSWERS, NUM_GISTS, words
from tests.support.command import own_process, refused, sql, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.runs.small_run import RULES, SmallRun
from tests.support.runs.written_plan import units_of

ALL = RetryPolicy(frozenset(RETRYABLE))
NO_GIST = {"prompt": "gist", "match": "river1 paragraph one", "finish_reason": "abort"}
Rule = Mapping[str, Any]


class Engine(ScriptedEngine):
    """Replies by the rules, else as the engine of the small run; keeps what it was asked."""

    def __init__(self, small: SmallRun, *rules: Rule) -> None:
        script = small.folder / "rules.yaml"
        script.write_text(yaml.safe_dump({"replies": [*map(dict, rules), *RULES]}))
        super().__init__(str(script), small.reader.engine.context_tokens)
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> Reply:
        self.asked.append(request)
        return await super().generate(request)

    @property
    def prompts(self) -> dict[str, int]:
        return dict(Counter(request.prompt for request in self.asked))


def work(
    small: SmallRun, *rules: Rule, retries: RetryPolicy | None = RETRY_TIMEOUTS_ONCE
) -> Engine:
    """All that is planned, by one worker; the engine that it asked."""
    engine = Engine(small, *rules)
    warehouse = small.config.warehouse
    prepared = prepare(small.resolved, warehouse, lambda line: None, retry_policy=retries)

    async def all_of_them() -> None:
        worker = small.worker(replace(small.reader, engine=engine))
        units = units_of(prepared).items()
        await asyncio.gather(*(worker.work(name, planned, 0) for name, planned in units))

    asyncio.run(all_of_them())
    return engine


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    return SmallRun(tmp_path)


def problems(small: SmallRun, table: str, attempt: int) -> list[Any]:
    """The problems of d1's rows in a table, whose unit is done by this attempt."""
    step = small.step(table)
    (unit,) = [unit for unit in small.units()["d1"] if unit.step_id == step.id]
    assert (unit.is_done, unit.attempt) == (True, attempt)
    return [row.problem for row in small.shards.load(step.writes, step.id, unit.unit, attempt)]


def test_what_got_no_reply_is_asked_again_once_by_the_same_command_then_by_a_retry(
    small: SmallRun,
) -> None:
    work(small, NO_GIST)
    assert problems(small, "gists", 1) == ["engine_failed", None, None]
    assert problems(small, "answers", 1) == ["upstream"] * 2
    before = shards(Path(small.shards.warehouse))
    assert work(small, NO_GIST).prompts == {"gist": 1}
    assert work(small, NO_GIST).asked == []
    assert work(small, NO_GIST, retries=ALL).prompts == {"gist": 1}
    assert problems(small, "gists", 3) == ["engine_failed", None, None]
    again = work(small, retries=ALL)
    # One gist, and what reads it: two questions with one reference each, rated by two prompts.
    assert again.prompts == {
        "gist": 1, "look_up_p": 2, "answer": 2, "rate_strict": 2, "rate_permissive": 2,
    }  # fmt: skip
    assert problems(small, "gists", 4) == [None] * 3
    assert problems(small, "answers", 1) == [None] * 2
    after = shards(Path(small.shards.warehouse))
    assert before.items() <= after.items(), "nothing that there was is touched"
    assert work(small, retries=ALL).asked == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"reply": " "}, "unparseable"),
        ({"reply": "far too", "finish_reason": "length"}, "truncated"),
    ],
)
def test_a_retry_asks_again_what_cannot_be_used(small: SmallRun, reply: Rule, problem: str) -> None:
    work(small, {"prompt": "answer", "match": "number 1 ", **reply})
    assert problems(small, "answers", 1) == [problem, None]
    assert work(small).asked == [], "not by the same command"
    again = work(small, retries=ALL)
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
        work(small)
    assert problems(small, "answers", 1) == ["unit_failed"] * 2
    assert work(small).asked == []
    assert work(small, retries=ALL).prompts["answer"] == 3
    assert problems(small, "answers", 2) == [None] * 2


def test_a_shared_reply_that_cannot_be_used_is_asked_again_once_for_all(
    small: SmallRun, tmp_path: Path
) -> None:
    """Two documents hold the same page; its gist was cut off, and the retry of each finds that."""
    shared = SharedReplies(UPath(tmp_path) / "shared")

    def asked(document_id: str, log: Replies, *rules: Rule) -> tuple[int, tuple[Call, ...]]:
        engine = Engine(small, *rules)
        reader = replace(small.reader, engine=engine)
        ask = Ask(reader, "gist", document_id, replace(log, shared=shared))
        asyncio.run(ask(PageGist(page="the same page"), Subject(page_index=0), is_shared=True))
        return len(engine.asked), ask.calls()

    cut = {"reply": "cut", "finish_reason": "length"}
    first = {name: asked(name, Replies(), cut) for name in ("d1", "d2")}
    assert [num for num, _ in first.values()] == [1, 0]
    again = {
        name: asked(name, Replies(attempt=2, earlier=calls, problems=calls))
        for name, (_, calls) in first.items()
    }
    assert [num for num, _ in again.values()] == [1, 0]
    assert [calls[0].reply for _, calls in again.values()] == ["as it was"] * 2


def test_words_that_retry_does_not_take() -> None:
    with pytest.raises(UsageError, match="retry takes warehouse, run"):
        run_again(["methods=bm25"])
    with pytest.raises(UsageError, match="problem=upstream: not asked again; write some of"):
        run_again(["problem=unparseable,upstream"])
    assert "no run there" in refused("retry", "warehouse=/nowhere/at")


@pytest.mark.slow
def test_the_command_asks_only_for_what_failed(tmp_path: Path) -> None:
    """Through a server that counts; four of fifteen replies are of no use."""

    def poor(body: dict[str, Any]) -> Answer:
        is_poor = "mill2" in body["messages"][0]["content"]
        return Answer(text="" if is_poor and "number 2" in str(body) else "a reply")

    warehouse = tmp_path / "warehouse"
    query = "select count(*) n from answers where problem = 'unparseable'"
    with LoopbackServer(answer=poor) as server:
        keyless = ("engine.api_key_env=null", "max_problem_rate=1.0")
        command = words(tmp_path, server, *keyless, "run=night")
        for num_asked in (NUM_GISTS + NUM_ANSWERS, 0):
            server.asked.clear()
            succeeded(own_process(*command))
            assert len(server.asked) == num_asked
            assert sql(warehouse, query) == [{"n": 2}]
        server.answer = lambda body: Answer(text="a reply")
        retry = ("retry", "run=night", f"warehouse={warehouse}", "--json")
        found = json.loads(succeeded(own_process(*retry)))
        assert found["problems"] == {"before": {"unparseable": 2}, "after": {}}
        assert len(server.asked) == 2
    assert sql(warehouse, query) == [{"n": 0}]
