"""What the numbers of a plan rest on, a line each."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.plan.estimate import PILOT_MARGIN, Estimate
from jobs.plan.pilot import Pilot


def assumptions(
    estimate: Estimate, phases: Sequence[Mapping[str, Any]], pilot_run: str | None
) -> list[str]:
    """Of the pilot, the tokens, the replies, the cache and the rates; `phases` as in plan.json."""
    told = [f"{p.name} {p.assumed}" for p in estimate.prompts if p.assumed]
    lines = [
        _pilot(estimate.pilot),
        *(f"tokens of {name}: {counts.how}" for name, counts in estimate.counts.items()),
        _expected(estimate, pilot_run, told),
        "at most: every reply takes its whole budget and leads to all that may be asked",
        "cached: what a prefix cache with room for all prompts holds",
        *(f"rates of {phase['phase']}: {phase['rates'] or _UNKNOWN}" for phase in phases),
    ]
    if any(p.engine and p.engine.context_tokens is None for p in estimate.prepared.phases):
        lines.append("engine.context_tokens is not set: no prompt is taken to be too long")
    return lines


_UNKNOWN = "not known; add --like RUN, --rates PREFILL,DECODE, pilot=N, or --gpu KIND --params N"


def _expected(estimate: Estimate, pilot_run: str | None, told: Sequence[str]) -> str:
    if pilot_run:
        return f"expected: what the documents of run {pilot_run} came to, by words and questions"
    like = f"replies are as long as in run {estimate.like.run}; " if estimate.like else ""
    return f"expected: {like}{'; '.join(told)}"


def _pilot(pilot: Pilot) -> str:
    if pilot.is_whole:
        return f"counted: all {len(pilot.works):,} documents that are left; nothing is scaled"
    asked = sum(len(key.questions) for key in pilot.keys)
    return (
        f"counted: {len(pilot.chosen)} of {len(pilot.works):,} documents (the shortest, the "
        f"longest, and by length those at even steps between) with {asked} questions; the rest by "
        f"words and questions, and `at most` is {100 * PILOT_MARGIN:.0f}% more for that"
    )
