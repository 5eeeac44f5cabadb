"""The expected cost of every step: the pilot's calls, scaled to the corpus."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from jobs.plan.count_calls import DryRunShards, execute_pilot, load_pilot
from jobs.plan.pilot import Pilot, choose_pilot
from jobs.plan.reference import Reference
from pipeline.core.prompts import PROMPTS
from pipeline.core.rows import Call, Document, Record
from pipeline.engines.counting import CountingEngine
from pipeline.engines.simulated import SimulatedSettings
from pipeline.engines.token_counts import TokenCounts, token_counts
from pipeline.store.shards.shard_files import shard_content
from pipeline.work.steps import Step
from pipeline.work.units import Unit

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens", "budget_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
NO_COST: Numbers = np.zeros(len(MEASURES))
_TRIED_TEXTS = 12  # tokenized to find the tokens per byte


@dataclass(frozen=True)
class Estimate:
    """`costs`: of the remaining work, in `MEASURES` by step id; `budget_tokens` are those of the
    same calls if every reply took its whole budget. `disk`: bytes by table. `counts`: by phase, the
    method of counting tokens."""

    pilot: Pilot
    costs: dict[str, Numbers]
    disk: dict[str, int]
    counts: dict[str, TokenCounts]


def estimate(prepared: Prepared, like: Reference | None) -> Estimate:
    """The estimate for the remaining work; with `like`, replies are as long as in that run."""
    pilot = choose_pilot(prepared)
    dry_run = load_pilot(prepared, pilot)
    texts = _texts(prepared, pilot, dry_run)
    counts = {phase.name: token_counts(phase.engine, texts)
              for phase in prepared.run.phases if phase.engine}  # fmt: skip
    execute_pilot(prepared, pilot, dry_run, lambda p: _engine(p, counts[p.name], like))
    return Estimate(pilot, total_costs(prepared, pilot, dry_run), _disk(pilot, dry_run), counts)


def _texts(prepared: Prepared, pilot: Pilot, dry_run: DryRunShards) -> list[str]:
    first = prepared.run.steps[0].id
    units = [unit for own in pilot.units.values() for unit in own if unit.step_id == first]
    found = [dry_run.load(Document, first, u.unit, u.attempt) for u in units[:_TRIED_TEXTS]]
    return [document.text for (document,) in found]


def _engine(phase: Phase, counts: TokenCounts, like: Reference | None) -> CountingEngine:
    assert phase.engine is not None
    usual = like.reply_tokens_of(phase.engine) if like else {}
    if isinstance(phase.engine, SimulatedSettings):
        usual = dict.fromkeys(PROMPTS, float(phase.engine.reply_tokens))
    return CountingEngine(phase.engine, counts, usual)


def total_costs(prepared: Prepared, pilot: Pilot, dry_run: DryRunShards) -> dict[str, Numbers]:
    """The costs of all documents by step id, of every step with remaining work that asks a
    model."""
    left = {unit.step_id for unit in prepared.planned() if not unit.is_done}
    engines = {step.id: engine for step, engine in prepared.run.steps_with_engines}
    found = {i: NO_COST for i, engine in engines.items() if engine and i in left}
    for scale, record, step, _, rows in _written(pilot, dry_run):
        if record is Call and rows:
            thinking = getattr(engines[step.id], "thinking_tokens", 0)
            costs = [_cost(step, c, thinking) for c in rows if not c.is_shared]
            found[step.id] = found[step.id] + scale * np.array([NO_COST, *costs]).sum(axis=0)
    return found


def _cost(step: Step, call: Call, thinking_tokens: int) -> tuple[float, ...]:
    uncached = call.prompt_tokens - call.cached_tokens
    budget = step.prompts[call.prompt]["max_reply_tokens"] + thinking_tokens
    return 1, call.prompt_tokens, uncached, call.reply_tokens, budget


def _disk(pilot: Pilot, dry_run: DryRunShards) -> dict[str, int]:
    """The bytes of the files that the run will write, by table."""
    sizes: Counter[str] = Counter()
    for scale, record, step, unit, rows in _written(pilot, dry_run):
        sizes[record.table] += round(scale * len(shard_content(record, step, unit, rows)))
    return dict(sizes)


def _written(
    pilot: Pilot, dry_run: DryRunShards
) -> Iterator[tuple[float, type[Record], Step, Unit, Any]]:
    """The rows of each unit that is counted, and the factor by which they are multiplied."""
    for record, step, unit, rows in dry_run.kept.values():
        yield pilot.scale.get(step.id, 0.0), record, step, unit, rows
