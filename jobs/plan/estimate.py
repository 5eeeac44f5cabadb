"""The expected cost of every step: the pilot's calls, scaled to the corpus; the assumptions of a
plan's numbers, a line each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.graph.preparation import Prepared
from jobs.output.cells import counted
from jobs.plan.cost_rates import Reference
from jobs.plan.pilot import DryRunShards, Pilot, choose_pilot, execute_pilot, load_pilot
from pipeline.core.calls import Call
from pipeline.core.engine import EngineSettings
from pipeline.core.prompts import PROMPTS
from pipeline.core.rows import Document
from pipeline.core.settings import sha
from pipeline.engines.counting import CountingEngine, TokenCounts, token_counts
from pipeline.engines.simulated import SimulatedSettings
from pipeline.store.shards.shard_content import shard_content
from pipeline.work.steps import Step

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens", "budget_tokens")
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
NO_COST: Numbers = np.zeros(len(MEASURES))
_UNKNOWN = "not known; add --like RUN, --rates PREFILL,DECODE or pilot=N"
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
    first = prepared.run.steps[0].id
    units = [unit for unit in pilot.units if unit.step_id == first]
    read = [dry_run.load(Document, first, u.unit, u.attempt) for u in units[:_TRIED_TEXTS]]
    texts = [document.text for (document,) in read]
    asked = {phase.name: phase.engine for phase in prepared.run.phases if phase.engine}
    counts = {name: token_counts(engine, texts) for name, engine in asked.items()}
    engines = {name: _engine(engine, counts[name], like) for name, engine in asked.items()}
    execute_pilot(prepared, pilot, dry_run, engines)
    return Estimate(pilot, *_scaled(prepared, pilot, dry_run), counts)


def _engine(engine: EngineSettings, counts: TokenCounts, like: Reference | None) -> CountingEngine:
    usual = like.reply_tokens.get(sha(engine.identity()), {}) if like else {}
    if isinstance(engine, SimulatedSettings):
        usual = dict.fromkeys(PROMPTS, float(engine.reply_tokens))
    return CountingEngine(engine, counts, usual)


def _scaled(
    prepared: Prepared, pilot: Pilot, dry_run: DryRunShards
) -> tuple[dict[str, Numbers], dict[str, int]]:
    """The costs of all documents by step id, of every step with remaining work that asks a model;
    and the bytes of the files that the run will write, by table."""
    engines = {step.id: engine for step, engine in prepared.run.steps_with_engines}
    costs = {i: NO_COST for i, engine in engines.items() if engine and i in prepared.plan.pending()}
    disk: Counter[str] = Counter()
    for record, step, unit, rows in dry_run.kept.values():
        scale = pilot.scale.get(step.id, 0.0)
        disk[record.table] += round(scale * len(shard_content(record, step, unit, rows)))
        if record is Call and rows:
            thinking = getattr(engines[step.id], "thinking_tokens", 0)
            own = [_cost(step, call, thinking) for call in rows if not call.is_shared]
            costs[step.id] = costs[step.id] + scale * np.array([NO_COST, *own]).sum(axis=0)
    return costs, dict(disk)


def _cost(step: Step, call: Call, thinking_tokens: int) -> tuple[float, ...]:
    """The `MEASURES` of a call."""
    uncached = call.prompt_tokens - call.cached_tokens
    budget = step.prompts[call.prompt]["max_reply_tokens"] + thinking_tokens
    return 1, call.prompt_tokens, uncached, call.reply_tokens, budget


def assumptions(
    prepared: Prepared,
    estimated: Estimate,
    like: Reference | None,
    phases: Sequence[Mapping[str, Any]],
) -> list[str]:
    """The assumptions about the pilot, the tokens, the replies, the cache and the rates; `phases`
    as in plan.json."""
    lengths = f"replies are as long as in run {like.run}; " if like else ""
    asking = [step.stage for step in prepared.run.steps if step.id in estimated.costs]
    prompts = dict.fromkeys(p for s in asking if s for p in s.prompts_used() if p.assumed)
    lines = [
        _counted(estimated.pilot),
        *(f"tokens of {name}: {counts.how}" for name, counts in estimated.counts.items()),
        f"expected: {lengths}{'; '.join(f'{p.name} {p.assumed}' for p in prompts)}",
        "budgets: every reply of these calls takes its whole budget; the number of calls has no "
        "bound here: walks, look-ups in turns and pages that a model cuts may take more",
        "cached: what a prefix cache with room for all prompts holds",
        *(f"rates of {phase['phase']}: {phase['rates'] or _UNKNOWN}" for phase in phases),
    ]
    if any(p.engine and p.engine.context_tokens is None for p in prepared.run.phases):
        lines.append("engine.context_tokens is not set: no prompt is taken to be too long")
    return lines


def _counted(pilot: Pilot) -> str:
    if pilot.is_whole:
        left = counted(pilot.num_documents, "document")
        return f"counted: {left}, all that is left; nothing is scaled"
    return (
        f"counted: {len(pilot.documents)} of {pilot.num_documents:,} documents, spaced by length, "
        f"with {pilot.num_questions:,} questions; scaled to the words and questions of all"
    )
