"""Repeats: what each of them makes anew, with which seeds, and the standard deviation over them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
import ray

from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha
from pipeline.work.units import Step
from tests.support.command import gistmill, sql, succeed, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NUM_REPEATS = 3
# The seed of repeat 0 is the engine's; of the others a hash of seed, repeat and attempt.
SEEDS = [0, *(int(sha([0, repeat, 1], 7), 16) for repeat in (1, 2))]
NUM_RIGHT = dict(zip(SEEDS, (3, 2, 0), strict=True))  # of the three questions, in each repeat
DRAWING = ("engine=openai", "engine.model=m", "engine.temperature=0.7")
SECOND = "shared (repeat 1)"


def steps(*words: str) -> list[Step]:
    resolved = read_run(["engine.base_url=http://127.0.0.1:1/v1", *DRAWING, *words])
    return resolved.steps


@pytest.mark.parametrize(
    ("words", "added"),
    [
        (["repeats=3"], [
            (name, "gist_only", repeat, "shared" if name != "look_up" else None)
            for repeat in (1, 2)
            for name in ("look_up", "answer", "rate", "score")
        ]),
        (["repeats=2", "repeat_from=memory"], [
            ("paginate", None, 1, SECOND),
            ("gist", None, 1, SECOND),
            ("look_up", "gist_only", 1, None),
            *((name, "gist_only", 1, SECOND) for name in ("answer", "rate", "score")),
        ]),
    ],
)  # fmt: skip
def test_what_each_repeat_makes_anew(words: list[str], added: list[Any]) -> None:
    once, more = steps("methods=gist_only"), steps("methods=gist_only", *words)
    ids = {step.id for step in once}
    assert ids < {step.id for step in more}, "repeat 0 is the same steps"
    new = [step for step in more if step.id not in ids]
    assert [(step.name, step.method, step.repeat, step.memory) for step in new] == added


def test_memories_made_anew_need_an_engine_that_draws() -> None:
    """Here only the clues are drawn, which are asked of a memory that the reader has made."""
    words = ["methods=memorag(retriever=bm25)", "repeats=2", "memory_engine.temperature=0.7",
             "memory_engine=openai", "memory_engine.model=m", "engine=extractive",
             "memory_engine.base_url=http://127.0.0.1:1/v1"]  # fmt: skip
    said = "repeat_from=memory: all memories would be the same, as engine=extractive is determin"
    with pytest.raises(UsageError, match=said):
        read_run([*words, "repeat_from=memory"])
    assert read_run(words).config.repeats == 2


class Night:
    """Three documents with a question each, by two methods, in three repeats from the memory on.

    A gist says the seed that it was drawn with. In each repeat so many questions are answered
    rightly as `NUM_RIGHT` says.
    """

    def __init__(self, folder: Path) -> None:
        numbers = (1, 2, 3)
        write(folder / "corpus", [document(n) for n in numbers],
              [question(n, of=n) for n in numbers])  # fmt: skip
        self.warehouse = folder / "warehouse"
        self.server = LoopbackServer(answer=self.answer)
        with self.server as server:
            self.words = [
                "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
                "methods=gist_only,constant", f"warehouse={self.warehouse}", "run=night",
                f"engine.base_url={server.url}", *DRAWING, "repeats=3", "repeat_from=memory",
            ]  # fmt: skip
            self.plan = json.loads(succeed("plan", *self.words, "--json"))
            self.out = succeed("run", *self.words)
            self.num_calls = len(server.asked)
            self.again = succeed("run", *self.words)

    def answer(self, body: dict[str, Any]) -> Answer:
        asked = body["messages"][-1]["content"]
        number = re.search(r"number (\d) about", asked)
        if number is None:
            return Answer(text=f"drawn by {body['seed']}")
        is_right = int(number[1]) <= NUM_RIGHT[body["seed"]]
        return Answer(text=f"reference 0 of question {number[1]}" if is_right else "wrong")

    def sql(self, query: str) -> list[dict[str, Any]]:
        return sql(self.warehouse, query)

    def report(self, *words: str) -> Any:
        return json.loads(succeed("report", f"warehouse={self.warehouse}", *words, "--json"))


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    with pytest.MonkeyPatch.context() as patch:
        ray.shutdown()
        patch.setenv("OPENAI_API_KEY", "sk-loopback")
        yield Night(tmp_path_factory.mktemp("repeats"))
        ray.shutdown()


@pytest.mark.slow
def test_every_repeat_draws_with_a_seed_of_its_own(night: Night) -> None:
    gists = night.sql("select memory, gist, count(*) as n from gists group by all order by all")
    memories = ("shared", SECOND, "shared (repeat 2)")
    assert gists == [{"memory": name, "gist": f"drawn by {seed}", "n": 9}
                     for name, seed in zip(memories, SEEDS, strict=True)]  # fmt: skip
    texts = [request.body["messages"][-1]["content"] for request in night.server.asked]
    for seed in SEEDS:  # an answer is read from the gists of its own repeat
        assert sum("about" in text and f"drawn by {seed}" in text for text in texts) == 3


@pytest.mark.slow
def test_the_sd_is_that_of_the_repeats_means(night: Night) -> None:
    """Of three questions 3, 2 and 0 are right: means of 100, 66.7 and 0."""
    means = [100 * NUM_RIGHT[seed] / 3 for seed in SEEDS]
    (row,) = [row for row in night.report()["rows"] if row["method"] == "gist_only"]
    mean = row["means"]["rouge1_stem"]
    assert (mean["repeats"], mean["n"]) == (NUM_REPEATS, 9)
    assert mean["sd"] == pytest.approx(stdev(means)) == pytest.approx(50.917, abs=1e-3)
    assert mean["mean"] == pytest.approx(sum(means) / 3)


@pytest.mark.slow
def test_what_is_planned_is_what_is_asked(night: Night) -> None:
    """Nine gists and three answers in each of three repeats."""
    stages = {row["stage"]: row["expected"]["calls"] for row in night.plan["stages"]}
    assert stages == {"gist": 27, "answer": 9}
    assert night.num_calls == 36
    assert {step["repeat"] for step in night.plan["steps"]} == {0, 1, 2}


@pytest.mark.slow
def test_methods_are_paired_within_a_repeat(night: Night) -> None:
    rows = night.sql("""select repeat, count(*) as n, sum(value) as points from paired
        where method = 'gist_only' and metric = 'rouge1_stem' group by 1 order by 1""")
    assert [(row["repeat"], row["n"]) for row in rows] == [(0, 3), (1, 3), (2, 3)]
    assert [row["points"] for row in rows] == pytest.approx([100 * n for n in NUM_RIGHT.values()])


@pytest.mark.slow
def test_a_run_may_gain_repeats(night: Night) -> None:
    NUM_RIGHT[int(sha([0, 3, 1], 7), 16)] = 1
    with LoopbackServer(answer=night.answer) as server:
        words = [f"engine.base_url={server.url}" if "base_url" in word else word
                 for word in night.words]  # fmt: skip
        succeeded(gistmill("run", *words, "repeats=4"))
        assert len(server.asked) == 12
    (row,) = [row for row in night.report()["rows"] if row["method"] == "gist_only"]
    assert row["means"]["rouge1_stem"]["sd"] == pytest.approx(stdev([100, 200 / 3, 0, 100 / 3]))
