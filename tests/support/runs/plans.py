"""What `gistmill plan` says, and what a run then makes, stage by stage."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.command import sql, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

MEASURES = ("calls", "prompt_tokens", "uncached_tokens", "reply_tokens")
Stages = dict[str, dict[str, Any]]


def six_documents(folder: Path) -> tuple[str, ...]:
    """Words of a corpus of six documents of three pages, a question each."""
    numbers = range(1, 7)
    write(folder, [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    return ("corpus=tables", f"corpus.path={folder}", *UNIFORM, "methods=gist_only")


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


def over_budget(plan: dict[str, Any], outcome: Stages) -> list[str]:
    """Every stage that was not planned, or whose replies were longer than their budgets on average:
    it may have made more calls, or fewer, than were expected."""
    missed, planned_stages = [], stages(plan)
    for stage, row in outcome.items():
        own = planned_stages.get(stage)
        calls = own["expected"]["calls"] if own else 0
        if not own or row["reply_tokens"] * calls > own["budgets"]["reply_tokens"] * row["calls"]:
            missed.append(f"{stage}: {row}, planned {own}")
    return missed


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
