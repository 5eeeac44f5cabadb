"""A pilot's counts scaled to the corpus."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jobs.plan.pilot
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.read_run import read_run
from jobs.plan.estimate import estimate
from jobs.plan.pilot import DryRunShards, choose_pilot
from pipeline.engines.counting import Prefixes
from tests.support.command import QMSUM
from tests.support.runs.plans import planned, stages
from tests.support.texts.small_corpus import UNIFORM, document, question, write


def test_a_prompt_finds_what_an_earlier_one_began_with() -> None:
    prefixes = Prefixes()
    begin = "".join(f"{n:04}" for n in range(160))  # 640 characters, none of it twice
    assert prefixes.share(begin + "x" * 360) == 0
    assert prefixes.share(begin + "y" * 360) == 0.64
    assert prefixes.share(begin[::-1]) == 0


METHODS = (
    "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=3),bm25(top_k=3),"
    "random_pages(top_k=2),full_text"
)


def prepared(*words: str) -> Prepared:
    resolved = read_run(["corpus=qmsum", f"corpus.path={QMSUM}", METHODS, *words])
    shards = DryRunShards(resolved.config.warehouse)
    return prepare(resolved, resolved.config.warehouse, lambda line: None, shards)


def test_some_documents_stand_for_the_words_and_questions_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: five documents of 30 to 150 words, of which two are counted."""
    rows = [{**document(n), "text": "word " * 30 * n} for n in range(1, 6)]
    asked = [question(10 * of + n, of=of) for of in range(1, 6) for n in range(of)]
    write(tmp_path, rows, asked)
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_WORDS", 0)
    monkeypatch.setattr(jobs.plan.pilot, "_MIN_DOCUMENTS", 2)
    words = ["corpus=tables", f"corpus.path={tmp_path}", *UNIFORM, "methods=gist_only"]
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}"])
    shards = DryRunShards(resolved.config.warehouse)
    made = prepare(resolved, resolved.config.warehouse, lambda line: None, shards)
    names = {step.id: step.name for step in made.run.steps}
    pilot = choose_pilot(made)
    assert not pilot.is_whole
    assert pilot.num_documents == 5
    assert [document.num_words for document in pilot.documents] == [60, 150]
    scale = {names[step_id]: scale for step_id, scale in pilot.scale.items()}
    assert scale["gist"] == pytest.approx((30 + 60 + 90 + 120 + 150) / (60 + 150))
    assert scale["answer"] == pytest.approx((1 + 2 + 3 + 4 + 5) / (2 + 5))


def test_nothing_is_planned_to_be_asked_in_vain(tmp_path: Path) -> None:
    """A run may, of a long book, while its engine idles; every page has a gist, and at most a
    choice of its end."""
    text = "\n\n".join(f"Part {n} " + "word " * (10 + 7 * n % 60) for n in range(1500))
    write(tmp_path, [{**document(1), "text": text}], [question(1, of=1)])
    words = ("corpus=tables", f"corpus.path={tmp_path}", "methods=gist_only", "rater=none")
    plan = planned(*words, "engine=simulated", f"warehouse={tmp_path / 'w'}")
    of = {name: stage["expected"]["calls"] for name, stage in stages(plan).items()}
    assert 48 < of["paginate"] <= of["gist"]


def test_a_step_that_few_documents_lack_is_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten documents without a question, but for the shortest: it is counted for its answer."""
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_WORDS", 0)
    monkeypatch.setattr(jobs.plan.pilot, "_MIN_DOCUMENTS", 1)
    rows = [{**document(n), "text": "word " * 30 * n} for n in range(1, 11)]
    write(tmp_path, rows, [question(1, of=1)])
    words = ["corpus=tables", f"corpus.path={tmp_path}", *UNIFORM, "methods=gist_only"]
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}", "rater=none"])
    shards = DryRunShards(resolved.config.warehouse)
    made = prepare(resolved, resolved.config.warehouse, lambda line: None, shards)
    estimated = estimate(made, None)
    assert [document.num_words for document in estimated.pilot.documents] == [30, 180]
    (answer,) = [step for step in made.run.steps if step.name == "answer"]
    assert estimated.costs[answer.id][0] == 1


def test_of_a_documents_many_questions_some_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one chunk of three; which ones, their ids' hashes say."""
    write(tmp_path, [document(1)], [question(n, of=1) for n in range(9)])
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_QUESTIONS", 3)
    words = ["corpus=tables", f"corpus.path={tmp_path}", "methods=closed_book", "rater=none",
             "questions_per_unit=3"]  # fmt: skip
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}"])
    shards = DryRunShards(resolved.config.warehouse)
    made = prepare(resolved, resolved.config.warehouse, lambda line: None, shards)
    (step,) = [step for step in made.run.steps if step.name == "answer"]
    estimated = estimate(made, None)
    assert 0 < estimated.pilot.num_questions < 9
    calls, *_, budgets = estimated.costs[step.id]
    assert calls == pytest.approx(9)
    assert budgets == pytest.approx(9 * 512)


@pytest.mark.slow
@pytest.mark.sampled
def test_a_sample_speaks_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen meetings counted whole, and from those that fewer words allow."""
    made = prepared("limit=16", f"warehouse={tmp_path}", "engine=simulated")
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_WORDS", 1e9)
    whole = estimate(made, None)
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_WORDS", 500_000)
    some = estimate(made, None)
    assert whole.pilot.is_whole
    assert len(some.pilot.documents) == 8
    for step_id, numbers in whole.costs.items():
        share = np.array([0.25, 0.25, 1e9, 0.25, 0.25])  # who finds a prompt in the cache is chance
        assert (abs(some.costs[step_id] - numbers) <= share * numbers + 1).all(), step_id
    total, scaled_total = (sum(e.costs.values()) for e in (whole, some))
    assert scaled_total == pytest.approx(total, rel=0.15)


@pytest.mark.slow
def test_a_plan_is_the_same_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What finds its prompt's beginning in the cache comes after that which brings it there."""
    made = prepared("limit=2", f"warehouse={tmp_path}", "engine=simulated")
    quick, chance = DryRunShards.commit, random.Random(1)

    def slow(*given: Any, **named: Any) -> bool:
        time.sleep(chance.random() / 50)
        return quick(*given, **named)

    monkeypatch.setattr(DryRunShards, "commit", slow)
    one, other = (estimate(made, None).costs for _ in range(2))
    assert {i: list(n) for i, n in one.items()} == {i: list(n) for i, n in other.items()}
