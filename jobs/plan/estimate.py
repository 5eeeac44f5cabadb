"""The expected and the largest cost of every step: the pilot counted in each scenario."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from jobs.plan.count_calls import (
    MEASURES,
    DryRunShards,
    Numbers,
    disk_bytes,
    execute_pilot,
    load_pilot,
    total_costs,
)
from jobs.plan.pilot import Pilot, choose_pilot
from jobs.plan.reference import Reference
from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.rows import Document
from pipeline.engines.counting import CountingEngine, Scenario
from pipeline.engines.simulated import SimulatedSettings
from pipeline.engines.token_counts import TokenCounts, token_counts

MARGIN = 0.1  # by which tokens of `at_most` are raised; calls too, if they are scaled
_TRIED_TEXTS = 12  # tokenized to find the tokens per byte


@dataclass(frozen=True)
class Estimate:
    """The costs of steps, by step id: `expected` and `at_most` in `MEASURES`; the bytes of `disk`
    by table; `counts`: by phase, the method of counting tokens."""

    pilot: Pilot
    expected: dict[str, Numbers]
    at_most: dict[str, Numbers]
    disk: dict[str, int]
    counts: dict[str, TokenCounts]


def estimate(prepared: Prepared, like: Reference | None) -> Estimate:
    """The estimate for the remaining work; with `like`, replies are as long as in that run."""
    pilot = choose_pilot(prepared)
    rows = load_pilot(prepared, pilot)
    texts = _texts(prepared, pilot, rows)
    counts = {phase.name: token_counts(phase.engine, texts)
              for phase in prepared.run.phases if phase.engine}  # fmt: skip

    def counted(scenario: Scenario) -> DryRunShards:
        dry_run = rows.clone()
        execute_pilot(
            prepared, pilot, dry_run, lambda p: _engine(p, scenario, counts[p.name], like)
        )
        return dry_run

    usual = counted("expected")
    expected = total_costs(pilot, usual, count_shared=False)
    at_most = dict(expected)
    for dry_run in [counted(scenario) for scenario in _extremes(prepared)]:
        most = total_costs(pilot, dry_run, count_shared=not pilot.is_whole)
        for step_id, numbers in most.items():
            raised = numbers * _margin(prepared, step_id, pilot, counts)
            at_most[step_id] = np.maximum(at_most.get(step_id, 0.0), raised)
            expected.setdefault(step_id, np.zeros(len(MEASURES)))
    return Estimate(pilot, expected, at_most, disk_bytes(pilot, usual), counts)


def asked_prompts(prepared: Prepared) -> list[type[Prompt[Any]]]:
    """All prompts that remaining steps may ask, each once."""
    left = {unit.step_id for unit in prepared.planned() if not unit.is_done}
    stages = [step.stage for step in prepared.run.steps if step.stage and step.id in left]
    return list(
        {prompt.name: prompt for stage in stages for prompt in stage.prompts_used()}.values()
    )


def _extremes(prepared: Prepared) -> Sequence[Scenario]:
    """The scenarios of which each step takes the larger cost; the second only if it differs."""
    differs = any(prompt.fewest is not Prompt.fewest for prompt in asked_prompts(prepared))
    return ("at_most", "fewest") if differs else ("at_most",)


def _texts(prepared: Prepared, pilot: Pilot, rows: DryRunShards) -> list[str]:
    first = prepared.run.steps[0].id
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
    """The factors for `at_most`, one per measure. Pages of other lengths may be drawn or retrieved,
    and tokens are not counted exactly; calls are."""
    (off,) = (counts[phase.name].may_be_off for phase in prepared.run.phases
              if step_id in {step.id for step in phase.steps})  # fmt: skip
    calls = 1.0 if pilot.is_whole else 1 + MARGIN
    return np.array([calls, *[(1 + off) * (1 + MARGIN)] * (len(MEASURES) - 1)])
