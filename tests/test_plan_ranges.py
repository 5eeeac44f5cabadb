"""Whatever a model does within the rules, its calls and tokens are between low and high."""

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.plan.costs import MEASURES, cost_of
from jobs.plan.estimate import context_of
from jobs.plan.plan import Plan, make_plan, stages_of
from jobs.plan.rates import RateOptions
from jobs.plan.rehearsal import Rehearsal, sample
from jobs.plan.todo import count
from stages.planning import Habits, PlanningEngine, Temper
from stages.token_counts import token_counts

from jobs.config import RunConfig, read_config
from jobs.step_graph import run_steps
from pipeline.engine import EngineSettings, Reply, Request
from pipeline.store import Shards
from tests.command import QMSUM

METHODS = (
    "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=3),bm25(top_k=3),"
    "random_pages(top_k=2),full_text"
)
WORDS = ("corpus=qmsum", f"corpus.path={QMSUM}", "limit=1", "rater=reader", METHODS)


class Moody(PlanningEngine):
    """A model that breaks anywhere, shortens to any length, looks up what it likes, and at times
    says what cannot be read."""

    def __init__(self, settings: EngineSettings, seed: int, context: int | None) -> None:
        super().__init__("likely", Habits(), token_counts(settings, ()), context, has_cache=False)
        self._draw = random.Random(seed)
        self._mood = self._draw.random()

    async def generate(self, request: Request) -> Reply:
        usual = await super().generate(request)
        text = getattr(self, f"_{request.prompt}", lambda _: usual.text)(request.fields)
        num = min(self._counts.of_text(text), request.max_reply_tokens)
        return Reply(text=text, finish_reason="stop", prompt_tokens=usual.prompt_tokens,
                     reply_tokens=max(1, num))  # fmt: skip

    def _break_point(self, fields: Any) -> str:
        labels = [part.label for part in fields.paragraphs if part.label is not None]
        if self._draw.random() < 0.1:
            return "I would rather not say."
        place = self._draw.random() ** (0.2 + 3 * self._mood)
        return f"Break point: <{labels[int(place * len(labels))]}>"

    def _gist(self, fields: Any) -> str:
        words = fields.page.split()
        most = min(len(words), 400)  # of the 512 tokens it may have
        return " ".join(words[: 1 + int(most * self._draw.random() ** (3 * self._mood))])

    def _look_up_p(self, fields: Any) -> str:
        pages = [
            self._draw.randrange(len(fields.passages) + 2) for _ in range(self._draw.randrange(6))
        ]
        return self._draw.choice([f"I want to look up Page {pages}", "Perhaps."])

    def _look_up_s(self, fields: Any) -> str:
        if self._mood > 0.5 and not fields.refused:
            return "Page 4321"  # not there: every turn is asked twice
        read = {*fields.pages_read, *fields.refused}
        page = self._draw.choice(
            [p.page_number for p in fields.passages if p.page_number not in read]
        )
        return self._draw.choice([*["STOP", "Hm."] * (self._mood < 0.5), *[f"Page {page}"] * 4])

    def _answer(self, fields: Any) -> str:
        return "word " * self._draw.choice([1, 5, 70, 500])


def outcome(config: RunConfig, seed: int) -> dict[str, dict[str, float]]:
    """What a moody model makes of all documents and questions."""
    placed = run_steps(config)
    steps = [step for step, _ in placed]
    nothing = Shards(Path(config.warehouse))
    committed = nothing.committed(steps)
    everything = sample(config, steps, committed, count(config, steps, committed))
    contexts = {step.id: context_of(engine) for step, engine in placed if engine}

    def make(settings: EngineSettings, temper: Temper) -> PlanningEngine:
        return Moody(settings, seed, context_of(settings))

    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal(config, placed, everything, Path(folder))
        rehearsal.run(nothing, "likely", make)
        costs = cost_of(rehearsal, contexts).costs
    found: dict[str, dict[str, float]] = {}
    for (step_id, _, _), values in costs.items():
        own = found.setdefault(rehearsal.steps[step_id].name, dict.fromkeys(MEASURES, 0.0))
        for measure, value in zip(MEASURES, values, strict=True):
            own[measure] += value
    return found


def plan_of(config: RunConfig) -> Plan:
    plan = make_plan(config, RateOptions())
    assert plan.sample["documents"] == plan.corpus["documents"]
    assert plan.sample["questions"] == plan.corpus["questions"], "nothing is scaled here"
    return plan


@pytest.fixture(scope="module", params=["roomy", "tight"])
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    tokens = {"roomy": 100_000, "tight": 4500}[request.param]
    words = (*WORDS, f"engine.context_tokens={tokens}")
    return read_config([*words, f"warehouse={tmp_path_factory.mktemp('none')}"])


@pytest.fixture(scope="module")
def plan(config: RunConfig) -> Plan:
    return plan_of(config)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_moods_stay_within_the_plan(config: RunConfig, plan: Plan, seed: int) -> None:
    was = outcome(config, seed)
    for row in stages_of(plan.steps):
        for measure in MEASURES:
            low, _, high = row[measure]
            found = was.get(row["stage"], {}).get(measure, 0.0)
            assert low <= found <= high, f"{row['stage']} {measure}: {found} not in {low}..{high}"
