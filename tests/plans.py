"""What `gistmill plan` says, and what a run then makes, stage by stage."""

import json
from pathlib import Path
from typing import Any

from tests.command import sql, succeed

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
    return {
        stage: {m: row[m] - before.get(stage, nothing)[m] for m in MEASURES}
        for stage, row in after.items()
    }


def outside(plan: dict[str, Any], outcome: Stages) -> list[str]:
    """Every number that is not between low and high. Which of the stages that begin alike finds
    nothing in the cache is chance, so uncached tokens are those of all stages."""
    missed = []
    ranges = stages(plan)
    for stage in {**ranges, **outcome}:
        for measure in ("calls", "prompt_tokens", "reply_tokens"):
            low, _, high = ranges[stage][measure] if stage in ranges else (0, 0, 0)
            was = outcome[stage][measure] if stage in outcome else 0
            if not low <= was <= high:
                missed.append(f"{stage} {measure}: {was} not in {low}..{high}")
    low, high = (sum(row["uncached_tokens"][i] for row in ranges.values()) for i in (0, 2))
    was = sum(row["uncached_tokens"] for row in outcome.values())
    return missed if low <= was <= high else [*missed, f"uncached: {was} not in {low}..{high}"]


def files(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
