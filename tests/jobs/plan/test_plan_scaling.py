"""A pilot's counts scaled to the corpus; and whatever a model does within the rules, its calls and
tokens are not over `at most`."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jobs.plan.pilot
from jobs.config.run_config import RunConfig
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.read_run import read_run
from jobs.plan.count_calls import MEASURES, DryRunShards, execute_pilot, load_pilot, total_costs
from jobs.plan.estimate import estimate
from jobs.plan.pilot import choose_pilot
from pipeline.core.engine import Reply, Request
from pipeline.engines.counting import CountingEngine, Prefixes
from pipeline.engines.token_counts import token_counts
from tests.support.command import QMSUM
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


def test_a_group_stands_for_its_words_and_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: five documents of 30 to 150 words in two groups, of three and of two."""
    rows = [{**document(n), "text": "word " * 30 * n} for n in range(1, 6)]
    asked = [question(10 * of + n, of=of) for of in range(1, 6) for n in range(of)]
    write(tmp_path, rows, asked)
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_WORDS", 0)
    monkeypatch.setattr(jobs.plan.pilot, "_MIN_GROUPS", 2)
    words = ["corpus=tables", f"corpus.path={tmp_path}", *UNIFORM, "methods=gist_only"]
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}"])
    shards = DryRunShards(resolved.config.warehouse)
    made = prepare(resolved, resolved.config.warehouse, lambda line: None, shards)
    names = {step.id: step.name for step in made.run.steps}
    pilot = choose_pilot(made)
    assert not pilot.is_whole
    assert pilot.num_documents == 5
    scales = {one.key.num_words: {names[i]: s for i, s in one.scale.items()}
              for one in pilot.counted}  # fmt: skip
    assert scales.keys() == {60, 150}
    # 30 + 60 + 90 words in place of 60, and 1 + 2 + 3 questions in place of 2.
    assert (scales[60]["gist"], scales[60]["answer"]) == (3.0, 3.0)
    assert scales[150]["gist"] == pytest.approx((120 + 150) / 150)
    assert scales[150]["answer"] == pytest.approx((4 + 5) / 5)


def test_of_a_documents_many_questions_some_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [document(1)], [question(n, of=1) for n in range(9)])
    monkeypatch.setattr(jobs.plan.pilot, "_MAX_QUESTIONS", 3)
    words = ["corpus=tables", f"corpus.path={tmp_path}", "methods=closed_book", "rater=none"]
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}"])
    shards = DryRunShards(resolved.config.warehouse)
    made = prepare(resolved, resolved.config.warehouse, lambda line: None, shards)
    (step,) = [step for step in made.run.steps if step.name == "answer"]
    estimated = estimate(made, None)
    (one,) = estimated.pilot.counted
    assert len(one.key.questions) == 3
    assert estimated.expected[step.id][0] == estimated.at_most[step.id][0] / 1.1 == 9


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
    assert len(some.pilot.counted) == 8
    for step_id, numbers in whole.expected.items():
        share = np.array([0.25, 0.25, 1e9, 0.25])  # who finds a prompt in the cache is chance
        assert (abs(some.expected[step_id] - numbers) <= share * numbers + 1).all(), step_id
    total, scaled_total = (sum(e.expected.values()) for e in (whole, some))
    assert scaled_total == pytest.approx(total, rel=0.15)


class Moody(CountingEngine):
    """A model that breaks anywhere, shortens to any length, looks up what it likes, and at times
    says what cannot be read."""

    def __init__(self, config: RunConfig, seed: int) -> None:
        counts = token_counts(config.engine, ())
        super().__init__("expected", config.engine, counts, {})
        self._draw = random.Random(seed)
        self._mood = self._draw.random()

    async def generate(self, request: Request) -> Reply:
        usual = await super().generate(request)
        text = getattr(self, f"_{request.prompt}", lambda _: usual.text)(request.fields)
        num = min(self._counts.of_text(text), request.max_reply_tokens)
        return Reply(text=text, finish_reason="stop", prompt_tokens=usual.prompt_tokens,
                     reply_tokens=max(1, num))  # fmt: skip

    def _break_point(self, fields: Any) -> str:
        if self._draw.random() < 0.1:
            return "I would rather not say."
        labels, place = fields.labels(), self._draw.random() ** (0.2 + 3 * self._mood)
        return f"Break point: <{labels[int(place * len(labels))]}>"

    def _gist(self, fields: Any) -> str:
        words = fields.page.split()
        most = min(len(words), 400)  # of the 512 tokens it may have
        return " ".join(words[: 1 + int(most * self._draw.random() ** (3 * self._mood))])

    def _look_up_p(self, fields: Any) -> str:
        numbers = range(self._draw.randrange(6))
        pages = [self._draw.randrange(len(fields.passages) + 2) for _ in numbers]
        return self._draw.choice([f"I want to look up Page {pages}", "Perhaps."])

    def _look_up_s(self, fields: Any) -> str:
        if self._mood > 0.5 and not fields.refused:
            return "Page 4321"  # not there: every turn is asked twice
        read = {*fields.pages_read, *fields.refused}
        left = [p.page_number for p in fields.passages if p.page_number not in read]
        page = f"Page {self._draw.choice(left)}"
        return self._draw.choice([*["STOP", "Hm."] * (self._mood < 0.5), *[page] * 4])

    def _answer(self, fields: Any) -> str:
        return "word " * self._draw.choice([1, 5, 70, 500])


def outcome(made: Prepared, seed: int) -> Mapping[str, Any]:
    """By step what a moody model makes of all documents and questions."""
    pilot = choose_pilot(made)
    copies = load_pilot(made, pilot)
    execute_pilot(made, pilot, copies, lambda phase: Moody(made.run.config, seed))
    return total_costs(pilot, copies, count_shared=False)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [100_000, 4500], ids=["roomy", "tight"])
def test_no_mood_is_over_at_most(tmp_path: Path, tokens: int) -> None:
    made = prepared("limit=1", f"warehouse={tmp_path}", "rater=reader",
                    f"engine.context_tokens={tokens}")  # fmt: skip
    most = estimate(made, None)
    assert most.pilot.is_whole

    @settings(max_examples=12, deadline=None)
    @given(seed=st.integers(0, 10**6))
    def holds(seed: int) -> None:
        names = {step.id: step.name for step in made.run.steps}
        for step_id, values in outcome(made, seed).items():
            limit = most.at_most.get(step_id, np.zeros(len(MEASURES)))
            assert (values <= limit).all(), (names[step_id], values, limit)

    holds()
