"""Repeats and their standard deviation; the exact number of model calls of every rerun."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.settings import sha
from pipeline.work.units import Step
from tests.support.command import sql_values, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

# The seed of repeat 0 is the engine's; of the others a hash of seed, repeat and attempt.
SEEDS = [0, *(int(sha([0, repeat, 1], 7), 16) for repeat in (1, 2))]
NUM_RIGHT = dict(zip(SEEDS, (3, 2, 0), strict=True))  # of the three questions, in each repeat
SECOND = "shared (repeat 1)"
DRAWING = ("engine=openai", "engine.model=m", "engine.temperature=0.7")


def steps(*words: str) -> list[Step]:
    return read_run(["engine.base_url=http://127.0.0.1:1/v1", *DRAWING, *words]).steps


def test_what_each_repeat_makes_anew() -> None:
    once = {step.id for step in steps("methods=gist_only")}

    def added(*words: str) -> list[Any]:
        more = steps("methods=gist_only", *words)
        assert once < {step.id for step in more}, "repeat 0 is the same steps"
        return [(s.name, s.method, s.repeat, s.memory) for s in more if s.id not in once]

    of_questions = ("look_up", "answer", "rate", "score")
    assert added("repeats=3") == [
        (name, "gist_only", repeat, "shared" if name != "look_up" else None)
        for repeat in (1, 2)
        for name in of_questions
    ]
    assert added("repeats=2", "repeat_from=memory") == [
        *((name, None, 1, SECOND) for name in ("paginate", "gist")),
        *((name, "gist_only", 1, SECOND if name != "look_up" else None) for name in of_questions),
    ]


def reply(body: dict[str, Any]) -> Answer:
    """A gist says the seed that it is drawn with. In each repeat so many questions are answered
    rightly as `NUM_RIGHT` says."""
    asked = body["messages"][-1]["content"]
    number = re.search(r"number (\d) about", asked)
    if number is None:
        return Answer(text=f"drawn by {body['seed']}")
    is_right = int(number[1]) <= NUM_RIGHT[body["seed"]]
    return Answer(text=f"reference 0 of question {number[1]}" if is_right else "wrong")


@pytest.mark.slow
def test_three_repeats_from_the_memory_on_and_a_fourth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three documents with a question each, by two methods."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    numbers, warehouse = (1, 2, 3), tmp_path / "warehouse"
    write(tmp_path / "corpus", [document(n) for n in numbers],
          [question(n, of=n) for n in numbers])  # fmt: skip
    words = [
        "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only,constant", f"warehouse={warehouse}", "run=night", *DRAWING,
        "repeat_from=memory",
    ]  # fmt: skip

    def mean() -> dict[str, Any]:
        rows = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))["rows"]
        means: dict[str, Any] = {row["method"]: row["means"]["rouge1_stem"] for row in rows}
        return dict(means["gist_only"])

    with LoopbackServer(answer=reply) as server:
        of_server = (*words, f"engine.base_url={server.url}", "repeats=3")
        plan = json.loads(succeed("plan", *of_server, "--json"))
        succeed("run", *of_server)
        texts = [asked.body["messages"][-1]["content"] for asked in server.asked]
    # Nine gists and three answers in each repeat, which draws with a seed of its own.
    stages = {row["stage"]: row["expected"]["calls"] for row in plan["stages"]}
    assert stages == {"gist": 27, "answer": 9} and len(texts) == 36
    assert {step["repeat"] for step in plan["steps"]} == {0, 1, 2}
    query = "select memory, gist, count(*) from gists group by all order by all"
    memories = ("shared", SECOND, "shared (repeat 2)")
    assert sql_values(warehouse, query) == [
        (name, f"drawn by {seed}", 9) for name, seed in zip(memories, SEEDS, strict=True)
    ]
    for seed in SEEDS:  # an answer is read from the gists of its own repeat
        assert sum("about" in text and f"drawn by {seed}" in text for text in texts) == 3
    # Of three questions 3, 2 and 0 are right. Methods are paired within a repeat.
    means, found = [100, 200 / 3, 0], mean()
    assert (found["repeats"], found["n"], found["mean"]) == (3, 9, pytest.approx(500 / 9))
    assert found["sd"] == pytest.approx(stdev(means)) == pytest.approx(50.917, abs=1e-3)
    query = """select repeat, count(*), sum(value) from paired
        where method = 'gist_only' and metric = 'rouge1_stem' group by 1 order by 1"""
    assert sql_values(warehouse, query) == [(n, 3, pytest.approx(3 * means[n])) for n in range(3)]
    # A fourth, with one right.
    NUM_RIGHT[int(sha([0, 3, 1], 7), 16)] = 1
    with LoopbackServer(answer=reply) as server:
        succeed("run", *words, f"engine.base_url={server.url}", "repeats=4")
        assert len(server.asked) == 12
    assert mean()["sd"] == pytest.approx(stdev([*means, 100 / 3]))


@pytest.mark.slow
def test_exact_calls_of_every_rerun(tmp_path: Path) -> None:
    corpus, warehouse, family = (tmp_path / name for name in ("corpus", "warehouse", "generic"))
    shutil.copytree(Path("conf/prompts/generic"), family)
    documents = [document(1), document(2)]
    questions = [question(1, of=1, references=2), question(2, of=1), question(3, of=2)]
    write(corpus, documents, questions)
    few = "gist_only,readagent_p(max_pages=2),bm25(top_k=1)"

    def calls(*words: str, methods: str = f"{few},bm25(top_k=2)") -> Mapping[str, int]:
        """The model calls of one more run, by stage; stages that asked nothing left out."""
        out = succeed(
            "run", "corpus=tables", f"corpus.path={corpus}", f"warehouse={warehouse}",
            f"methods={methods}", f"family={family}", *UNIFORM, *words, "--json",
        )  # fmt: skip
        found: Counter[str] = Counter()
        for step_id, number in json.loads(out)["calls"].items():
            found[step_id.rpartition("-")[0]] += number
        return +found

    # By hand: 2 documents of 3 pages; 3 questions with 4 references, 3 methods. The uniform pages
    # ask nobody; only readagent_p asks for its look-up; every reference is rated twice.
    assert calls(methods=few) == {"gist": 6, "look_up": 3, "answer": 9, "rate": 24}
    assert calls(methods=few) == {}, "a rerun"
    # A second bm25: 3 answers and 4 references rated twice.
    assert calls() == {"answer": 3, "rate": 8}, "one method more"
    # q4 of d1, one reference: one look-up, 4 answers, 4 x 2 verdicts.
    write(corpus, documents, [*questions, question(4, of=1)])
    assert calls() == {"look_up": 1, "answer": 4, "rate": 8}, "one question more"
    # d3 with 3 pages and one question.
    write(corpus, [*documents, document(3)], [*questions, question(4, of=1), question(5, of=3)])
    assert calls() == {"gist": 3, "look_up": 1, "answer": 4, "rate": 8}, "one document more"
    assert calls("limit=1") == {}, "a limit redoes nothing"
    # 5 questions with 6 references, 4 methods: answered and rated again, read and looked up never.
    template = family / "answer.jinja"
    template.write_text(template.read_text() + "\nThink of the reader.\n")
    assert calls() == {"answer": 20, "rate": 48}, "a changed answer prompt"
    # A gist shard and its calls: that document's 3 gists, nothing after them.
    (gist_step,) = (warehouse / "tables" / "gists").iterdir()
    shard = sorted(gist_step.iterdir())[0]
    shard.unlink()
    assert calls() == {} and shard.is_file(), "rows are made from the committed calls"
    shard.unlink()
    (warehouse / "tables" / "calls" / gist_step.name / shard.name).unlink()
    assert calls() == {"gist": 3}, "one shard deleted"
