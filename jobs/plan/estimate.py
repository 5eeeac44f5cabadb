"""The expected cost of every step: the pilot's calls, scaled to the corpus; the assumptions of a
plan's numbers, a line each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared
from jobs.plan.cost_rates import Reference
from jobs.plan.count_calls import DryRunShards, execute_pilot, load_pilot
from jobs.plan.pilot import Pilot, choose_pilot
from pipeline.core.calls import Call
from pipeline.core.prompts import PROMPTS
from pipeline.core.rows import Document, Record
from pipeline.engines.counting import CountingEngine, TokenCounts, token_counts
from pipeline.engines.simulated import SimulatedSettings
from pipeline.store.shards.footers import shard_content
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


_UNKNOWN = "not known; add --like RUN, --rates PREFILL,DECODE or pilot=N"


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
        return f"counted: all {pilot.num_documents:,} documents that are left; nothing is scaled"
    return (
        f"counted: {len(pilot.keys)} of {pilot.num_documents:,} documents, spaced by length, "
        f"with {pilot.num_questions:,} questions; scaled to the words and questions of all"
    )
