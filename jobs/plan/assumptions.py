"""The assumptions of a plan's numbers, a line each."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.graph.preparation import Prepared
from jobs.plan.estimate import Estimate
from jobs.plan.pilot import Pilot
from jobs.plan.reference import Reference

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
