"""What `gistmill plan` says, and what a run then makes, stage by stage."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.command import sql, succeed

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Stages = dict[str, dict[str, Any]]


def planned(*words: str | Path) -> dict[str, Any]:
    """The plan's JSON."""
    found: dict[str, Any] = json.loads(succeed("plan", *words, "--json"))
    return found


def stages(plan: dict[str, Any]) -> Stages:
    return {row["stage"]: row for row in plan["stages"]}


def made(warehouse: str | Path, run: str = "r") -> Stages:
    """What the calls of a run add up to."""
    rows = sql(
        warehouse,
        """select stage, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(prompt_tokens - cached_tokens)::bigint as uncached_tokens,
        sum(reply_tokens)::bigint as reply_tokens
        from calls where not is_shared group by stage""",
        f"run={run}",
    )
    return {row["stage"]: row for row in rows}


def since(after: Stages, before: Stages) -> Stages:
    """What was made between the two."""
    nothing = dict.fromkeys(MEASURES, 0)
    found = {
        stage: {m: row[m] - before.get(stage, nothing)[m] for m in MEASURES}
        for stage, row in after.items()
    }
    return {stage: row for stage, row in found.items() if row["calls"]}


def exceeded(plan: dict[str, Any], outcome: Stages) -> list[str]:
    """Every number above `at most`. Which of the stages that begin alike finds nothing in the cache
    is chance, so uncached tokens are those of all stages."""
    missed, ranges = [], stages(plan)
    for stage, row in outcome.items():
        for measure in ("calls", "prompt_tokens", "reply_tokens"):
            most = ranges[stage]["at_most"][measure] if stage in ranges else 0
            if row[measure] > most:
                missed.append(f"{stage} {measure}: {row[measure]} over {most}")
    was = sum(row["uncached_tokens"] for row in outcome.values())
    most = plan["all"]["at_most"]["uncached_tokens"]
    return missed if was <= most else [*missed, f"uncached: {was} over {most}"]


def off(plan: dict[str, Any], outcome: Stages, share: float, measures: Sequence[str]) -> list[str]:
    """Every number that is off what was expected by more than that."""
    missed, ranges = [], stages(plan)
    for stage in {**ranges, **outcome}:
        for measure in measures:
            expected = ranges[stage]["expected"][measure] if stage in ranges else 0
            was = outcome[stage][measure] if stage in outcome else 0
            if abs(expected - was) > share * was:
                missed.append(f"{stage} {measure}: {was}, expected {expected}")
    return missed


def files(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
