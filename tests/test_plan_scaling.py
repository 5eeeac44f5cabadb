"""Scaling a pilot: exact where all is in it, never negative, never less for more documents; and
whatever a model does within the rules, its calls and tokens are not over `at most`."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jobs.plan.pilot
from jobs.config import RunConfig, read_config
from jobs.plan.counting import Copies, costs, execute, loaded
from jobs.plan.estimate import Estimate
from jobs.plan.pilot import choose
from jobs.plan.scaling import MEASURES, Point, Size, scaled
from jobs.preparation import Prepared, prepare
from pipeline.counting_engine import CountingEngine, Prefixes
from pipeline.engine import Reply, Request
from pipeline.token_counts import token_counts
from tests.command import QMSUM

KINDS = (frozenset({"a"}), frozenset({"a", "b"}))
SIZES = st.builds(Size, st.sampled_from(KINDS), st.integers(1, 10**6), st.integers(1, 10**6))
POINTS = st.builds(
    lambda size, values: Point(size, np.array(values)),
    SIZES,
    st.lists(st.floats(0, 1e9), min_size=4, max_size=4),
)


@given(st.lists(POINTS, min_size=1, max_size=8))
def test_a_pilot_of_everything_is_what_it_came_to(points: list[Point]) -> None:
    total = scaled(points, [point.size for point in points])
    assert total == pytest.approx(np.sum([point.values for point in points], axis=0))


@given(st.lists(POINTS, min_size=1, max_size=6), st.lists(SIZES, max_size=8), SIZES)
def test_more_documents_never_come_to_less(
    points: list[Point], sizes: list[Size], one: Size
) -> None:
    some, more = scaled(points, sizes), scaled(points, [*sizes, one])
    assert (some >= 0).all()
    assert (more >= some * (1 - 1e-9)).all()


def test_between_two_lengths_rates_lie_on_a_line() -> None:
    """By hand: 10 words cost 1 each, 30 words 3 each; 20 words cost 2 each, 90 words 3 each."""
    points = [Point(Size(KINDS[0], n, n), np.array([float(n * n // 10)])) for n in (10, 30)]
    assert scaled(points, [Size(KINDS[0], 20, 20)]) == pytest.approx([40.0])
    assert scaled(points, [Size(KINDS[0], 90, 90)]) == pytest.approx([270.0])


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
    config = read_config(["corpus=qmsum", f"corpus.path={QMSUM}", METHODS, *words])
    return prepare(config, config.warehouse, lambda line: None, Copies(config.warehouse))


def estimated(made: Prepared) -> Estimate:
    estimate = Estimate(made, choose(made), None, {})
    estimate.count()
    return estimate


@pytest.mark.slow
def test_a_sample_speaks_for_the_rest(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen meetings counted whole, and from those that fewer words allow."""
    made = prepared("limit=16", f"warehouse={tmp_path}", "engine=simulated")
    monkeypatch.setattr(jobs.plan.pilot, "_WORDS", 1e9)
    whole = estimated(made)
    monkeypatch.setattr(jobs.plan.pilot, "_WORDS", 500_000)
    some = estimated(made)
    assert whole.pilot.is_whole
    assert len(some.pilot.chosen) < 8
    assert sum(len(key.questions) for key in some.pilot.keys) < 40
    for step_id, numbers in whole.expected.items():
        share = np.array([0.2, 0.3, 0.6, 0.3])  # which question came first is chance in the cache
        assert (abs(some.expected[step_id] - numbers) <= share * numbers + 1).all(), step_id
    total, scaled_total = (sum(e.expected.values()) for e in (whole, some))
    assert scaled_total == pytest.approx(total, rel=0.25)


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
    pilot = choose(made)
    copies = loaded(made, pilot)
    execute(made, pilot, copies, lambda phase: Moody(made.config, seed))
    return {
        step: sum(p.values for p in points) for step, points in costs(pilot, copies, False).items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [100_000, 4500], ids=["roomy", "tight"])
def test_no_mood_is_over_at_most(tmp_path: Any, tokens: int) -> None:
    made = prepared("limit=1", f"warehouse={tmp_path}", "rater=reader",
                    f"engine.context_tokens={tokens}")  # fmt: skip
    most = estimated(made)
    assert most.pilot.is_whole

    @settings(max_examples=5, deadline=None)
    @given(seed=st.integers(0, 10**6))
    def holds(seed: int) -> None:
        names = {step.id: step.name for step in made.steps}
        for step_id, values in outcome(made, seed).items():
            limit = most.at_most.get(step_id, np.zeros(len(MEASURES)))
            assert (values <= limit).all(), (names[step_id], values, limit)

    holds()
