"""A run's plan beside what happened since it was made. Light: every report reads this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.store import query
from pipeline.store.runs import RunFolder

MEASURES = ("calls", "prompt_tokens", "reply_tokens")
_MADE = """
select step_id, count(*) as calls, sum(prompt_tokens)::bigint as prompt_tokens,
  sum(reply_tokens)::bigint as reply_tokens
from calls where not is_shared group by step_id"""
_DOCUMENTS = "select count(*) as n from documents where problem is null and not skipped"


@dataclass(frozen=True)
class Planned:
    """`stages`: a row per stage, of every measure low, likely, high and what was made.

    `hours` are low, likely, high (null where no rate was known) of all phases one after another,
    `took` those by the clock of what was done since, null where they were not kept.
    """

    made_at: str
    documents: int  # that the plan was made for
    documents_now: int
    stages: tuple[Mapping[str, Any], ...]
    hours: tuple[float, float, float] | None
    took: float | None


def planned(folder: RunFolder, connection: Any) -> Planned | None:
    """The last plan of a run; null where none was kept. Calls that stood before it, and steps
    that were added after it, are left out."""
    plan = folder.plan_made()
    if plan is None:
        return None
    made = {row["step_id"]: row for row in query(connection, _MADE)}
    (documents,) = query(connection, _DOCUMENTS)
    return Planned(
        made_at=plan["made_at"],
        documents=plan["corpus"]["documents"],
        documents_now=documents["n"],
        stages=tuple(_stage(row, plan, made) for row in plan["stages"]),
        hours=_hours(plan["phases"]),
        took=_took(folder.launches(), plan["made_at"]),
    )


def _stage(
    row: Mapping[str, Any], plan: Mapping[str, Any], made: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    own = [step_id for step_id, step in plan["steps"].items() if step["stage"] == row["stage"]]
    found: dict[str, Any] = {"stage": row["stage"]}
    for measure in MEASURES:
        now = sum(made.get(step_id, {}).get(measure, 0) for step_id in own)
        before = sum(plan["stood"].get(step_id, {}).get(measure, 0) for step_id in own)
        found[measure] = {"planned": row[measure], "made": now - before}
    return found


def _hours(phases: Sequence[Mapping[str, Any]]) -> tuple[float, float, float] | None:
    if not phases or any(phase["hours"] is None for phase in phases):
        return None
    low, likely, high = (sum(phase["hours"][i] for phase in phases) for i in range(3))
    return low, likely, high


def _took(launches: Sequence[Mapping[str, Any]], made_at: str) -> float | None:
    """Hours of the phases with an engine; scoring is not planned."""
    since = [one for one in launches if one["started_at"] >= made_at]
    timed = [phase for one in since for phase in one.get("phases", ())]
    asked = [phase["seconds"] for phase in timed if not phase["phase"].startswith("scoring")]
    return sum(asked) / 3600 if asked else None
