"""Compare a run's plan with the calls and hours since it was made. Imported by every report, so
imports no stages."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from jobs.output.cells import Part, Table
from pipeline.files.place import list_paths
from pipeline.store import connect
from pipeline.store.runs.planned_units import UNIT_KEYS
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from pipeline.work.units import Unit

_MEASURES = ("calls", "prompt_tokens", "reply_tokens")
_SUMS = "count(*) as calls, " + ", ".join(f"sum({m})::bigint as {m}" for m in _MEASURES[1:])
_HOURS = "Hours: {expected:.3g} expected, {made:.3g} by the clock."


class _Plan(BaseModel):
    """The parts of a stored plan that reports read."""

    made_at: str
    stages: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    phases: list[dict[str, Any]]
    before: dict[str, dict[str, int]]
    settings_sha: str | None = None  # of earlier versions: not known


def calls_before_plan(folder: RunFolder, done: Sequence[Unit]) -> dict[str, dict[str, int]]:
    """Calls and tokens of these units, by step; a report subtracts them, as they precede the
    plan."""
    if not done or not list_paths(folder.warehouse / "runs", "*/units.parquet"):
        return {}
    names = [{"step_id": unit.step_id, "unit": unit.unit} for unit in done]
    with connect(folder.warehouse) as connection:
        connection.create_table("done", UNIT_KEYS, names)
        own = "raw_calls semi join done using (step_id, unit)"
        rows = query(
            connection, f"select step_id, {_SUMS} from {own} where not is_shared group by 1"
        )
    return {row["step_id"]: {name: row[name] for name in _MEASURES} for row in rows}


def planned_beside(folder: RunFolder, connection: Any) -> list[dict[str, Any]] | None:
    """A row per stage: what was `expected` and what is `made` since the run's last plan, and a row
    of hours if they were planned; None if no plan was made, or one for other settings."""
    stored = folder.left_out.unless_damaged(lambda: folder.plan_made(_Plan.model_validate), None)
    if stored is None:
        return None
    of_run = (folder.config() or {}).get("settings_sha")
    if None not in (of_run, stored.settings_sha) and of_run != stored.settings_sha:
        return None
    plan = stored.model_dump()
    found = query(connection, f"select step_id, {_SUMS} from calls where not is_shared group by 1")
    now, before = {row["step_id"]: row for row in found}, plan["before"]
    rows = []
    for stage in plan["stages"]:
        own = [step["step_id"] for step in plan["steps"] if step["stage"] == stage["stage"]]
        made = {m: sum(now[i][m] - before.get(i, {}).get(m, 0) for i in own if i in now)
                for m in _MEASURES}  # fmt: skip
        rows.append({**stage, "made": made})
    return [*rows, *_hours(plan, folder)]


def _hours(plan: Mapping[str, Any], folder: RunFolder) -> list[dict[str, Any]]:
    """The hours of all phases with an engine, summed."""
    planned = [phase["hours"] for phase in plan["phases"]]
    if not planned or None in planned:
        return []
    names = {phase["phase"] for phase in plan["phases"]}
    since = [
        launch for launch in folder.readable_launches() if launch["started_at"] >= plan["made_at"]
    ]
    took = [phase["seconds"] / 3600 for launch in since for phase in launch.get("phases", ())
            if phase["phase"].split(":")[0] in names]  # fmt: skip
    expected = sum(phase["expected"] for phase in planned)
    return [{"hours": {"expected": expected, "made": sum(took)}}]


def planned_tables(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The plan beside what was made, as parts of a report."""
    cells = [
        {"planned": row["stage"]}
        | {
            f"{measure.replace('_', ' ')} {which}": row[which][measure]
            for measure in _MEASURES
            for which in ("expected", "made")
        }
        for row in rows
        if "stage" in row
    ]
    hours = [_HOURS.format(**row["hours"]) for row in rows if "hours" in row]
    return [Table(cells), *hours]
