"""What every step is expected to take, and what at most: the pilot counted in each scenario."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.phases import Phase
from jobs.plan.counting import MEASURES, Copies, Numbers, disk, execute, loaded, totals
from jobs.plan.pilot import Pilot, choose
from jobs.plan.reference import Reference
from jobs.preparation import Prepared
from pipeline.counting_engine import CountingEngine, Scenario
from pipeline.prompts import PROMPTS, Prompt
from pipeline.rows import Document
from pipeline.simulated_engine import SimulatedSettings
from pipeline.token_counts import TokenCounts, token_counts

MARGIN = 0.1  # by which tokens of `at most` are raised; calls too, where they are scaled
_TRIED_TEXTS = 12  # by a tokenizer


@dataclass(frozen=True)
class Estimate:
    """By step id `expected` and `at_most` in `MEASURES`; bytes of `disk` by table; by phase how
    tokens were counted."""

    pilot: Pilot
    expected: dict[str, Numbers]
    at_most: dict[str, Numbers]
    disk: dict[str, int]
    counts: dict[str, TokenCounts]


def estimate(prepared: Prepared, like: Reference | None) -> Estimate:
    """Of what is left to do; where `like` is given, replies are as long as there."""
    pilot = choose(prepared)
    rows = loaded(prepared, pilot)
    texts = _texts(prepared, pilot, rows)
    counts = {phase.name: token_counts(phase.engine, texts)
              for phase in prepared.phases if phase.engine}  # fmt: skip

    def counted(scenario: Scenario) -> Copies:
        copies = rows.another()
        execute(prepared, pilot, copies, lambda p: _engine(p, scenario, counts[p.name], like))
        return copies

    usual = counted("expected")
    expected = totals(pilot, usual, count_shared=False)
    at_most = dict(expected)
    for copies in [counted(scenario) for scenario in _extremes(prepared)]:
        most = totals(pilot, copies, count_shared=not pilot.is_whole)
        for step_id, numbers in most.items():
            raised = numbers * _margin(prepared, step_id, pilot, counts)
            at_most[step_id] = np.maximum(at_most.get(step_id, 0.0), raised)
            expected.setdefault(step_id, np.zeros(len(MEASURES)))
    return Estimate(pilot, expected, at_most, disk(pilot, usual), counts)


def asked_prompts(prepared: Prepared) -> list[type[Prompt[Any]]]:
    """All prompts that remaining steps may ask, each once."""
    left = {unit.step_id for unit in prepared.planned() if not unit.is_done}
    stages = [step.stage for step in prepared.steps if step.stage and step.id in left]
    return list({prompt.name: prompt for stage in stages for prompt in stage.asked()}.values())


def _extremes(prepared: Prepared) -> Sequence[Scenario]:
    """The scenarios of which each step takes the larger; the last only where it differs."""
    differs = any(prompt.fewest is not Prompt.fewest for prompt in asked_prompts(prepared))
    return ("at_most", "fewest") if differs else ("at_most",)


def _texts(prepared: Prepared, pilot: Pilot, rows: Copies) -> list[str]:
    first = prepared.steps[0].id
    units = [unit for one in pilot.counted for unit in one.units if unit.step_id == first]
    found = [rows.load(Document, first, unit.unit, unit.attempt) for unit in units[:_TRIED_TEXTS]]
    return [document.text for (document,) in found]


def _engine(
    phase: Phase, scenario: Scenario, counts: TokenCounts, like: Reference | None
) -> CountingEngine:
    assert phase.engine is not None
    usual = like.reply_tokens_of(phase.engine) if like else {}
    if isinstance(phase.engine, SimulatedSettings):
        usual = dict.fromkeys(PROMPTS, float(phase.engine.reply_tokens))
    return CountingEngine(scenario, phase.engine, counts, usual)


def _margin(
    prepared: Prepared, step_id: str, pilot: Pilot, counts: dict[str, TokenCounts]
) -> Numbers:
    """What `at most` is multiplied by, measure by measure. Pages of other lengths may be drawn or
    retrieved, and tokens are not counted exactly; calls are."""
    (off,) = (counts[phase.name].may_be_off for phase in prepared.phases
              if step_id in {step.id for step in phase.steps})  # fmt: skip
    calls = 1.0 if pilot.is_whole else 1 + MARGIN
    return np.array([calls, *[(1 + off) * (1 + MARGIN)] * (len(MEASURES) - 1)])
