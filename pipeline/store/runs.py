"""The files of one run: its config, what made it, and the inputs it planned.

They are written before work; progress is only ever the shards.
"""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from upath import UPath

from pipeline.errors import AccountingError, UsageError
from pipeline.place import AnyPath, each, place, write
from pipeline.steps import Step
from pipeline.store.shards import parquet, write_json
from pipeline.store.views import UNITS
from pipeline.units import Unit

_SECONDS_ALIVE = 30.0


class RunFolder:
    """<warehouse>/runs/<name>/ and the steps/ it shares with every other run."""

    def __init__(self, warehouse: AnyPath, name: str) -> None:
        self.warehouse = place(warehouse)
        self.path = self.warehouse / "runs" / name
        self._progress = self.path / "alive" / "progress"
        self._plan = self.path / "plan.json"

    def config(self) -> dict[str, Any] | None:
        """The config the run was last started with, if there is one."""
        file = self.path / "config.yaml"
        return yaml.safe_load(file.read_text()) if file.is_file() else None

    def report_facts(self) -> dict[str, Any]:
        """What reading commands need of the config. Raises UsageError for a run of an earlier
        version, which kept less of it."""
        facts: dict[str, Any] = (self.config() or {}).get("report", {})
        if "stages" not in facts:
            raise UsageError(
                f"run={self.path.name}: started by an earlier version of gistmill; start it again"
            )
        return facts

    def start(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], has_work: bool
    ) -> None:
        """Write the config, and what works on the run now beside what did before.

        A command that finds everything done made nothing, and is not named.
        """
        write(self.path / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False).encode())
        before = self.launches()
        if has_work or not before:
            launches = {"launches": [*before, provenance]}
            write_json(self.path / "provenance.json", launches)

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep what `gistmill plan` found, the last one only."""
        write(self._plan, json.dumps(plan, indent=1).encode())

    def plan_made(self) -> dict[str, Any] | None:
        """What `gistmill plan` left; null where nobody asked it."""
        return _json(self._plan)

    def took(self, phase: Mapping[str, Any]) -> None:
        """Note what a phase of the launch at work took: seconds, workers, calls and tokens."""
        *before, launch = self.launches()
        launch = {**launch, "phases": [*launch.get("phases", []), phase]}
        write_json(self.path / "provenance.json", {"launches": [*before, launch]})
        for file in self.path.glob("alive/*.json"):  # its workers are gone
            file.unlink(missing_ok=True)

    def write_progress(self, launch: str, state: Mapping[str, Any]) -> None:
        """How far the launch at work is; advisory."""
        write_json(self._progress, {"launch": launch, **state})

    def at_work(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """How far the launch at work is, and its workers; null and none where there is no such.

        A worker that is being ended may send a last heartbeat after its driver has gone.
        """
        state = _json(self._progress)
        workers = self.alive(state["launch"]) if state else []
        return state if workers else None, workers

    def write_report(self, markdown: str) -> None:
        write(self.path / "report.md", f"{markdown}\n".encode())

    def launches(self) -> list[dict[str, Any]]:
        """What made the run's rows: one entry for each command that did some of it, in order."""
        found = _json(self.path / "provenance.json") or {"launches": []}
        launches: list[dict[str, Any]] = found["launches"]
        return launches

    def planned(self, column: str) -> set[str]:
        """The document_id or question_id values of what the run has planned so far."""
        file = self.path / "units.parquet"
        if not file.is_file():
            return set()
        with file.open("rb") as opened:
            values = pq.read_table(opened, columns=[column])[column]
        return set(values.unique().to_pylist()) - {None}

    def alive(self, launch: str) -> list[dict[str, Any]]:
        """The launch's workers with a heartbeat in the last 30 seconds."""
        files = sorted(self.path.glob("alive/*.json"))
        fresh = [f for f in files if time.time() - f.stat().st_mtime < _SECONDS_ALIVE]
        signs = [json.loads(file.read_text()) for file in fresh]
        return [sign for sign in signs if sign["launch"] == launch]

    def all_gone(self) -> None:
        """Forget the workers; whoever started them knows that they have ended."""
        self._progress.unlink(missing_ok=True)
        for file in self.path.glob("alive/*"):
            file.unlink(missing_ok=True)
        markers = self.path / "in_flight"
        if markers.exists():
            markers.fs.rm(markers.path, recursive=True)

    def plan(self, steps: Iterable[Step], units: Iterable[Unit]) -> None:
        """Write what made each step, once, and every input the run plans."""
        each(self._describe, steps)
        columns: dict[str, list[str | None]] = {name: [] for name in UNITS.names}
        for unit in units:  # by column: there may be millions
            asked: list[str | None] = [*unit.inputs] or [None]
            columns["step_id"] += [unit.step_id] * len(asked)
            columns["unit"] += [unit.unit] * len(asked)
            columns["document_id"] += [unit.document_id] * len(asked)
            columns["question_id"] += asked
        write(self.path / "units.parquet", parquet(pa.Table.from_pydict(columns, schema=UNITS)))

    def _describe(self, step: Step) -> None:
        """Write what made a step, once. Raises AccountingError where the file says otherwise."""
        file = self.warehouse / "steps" / f"{step.id}.json"
        # As JSON has it: tuples are lists there.
        made = json.loads(json.dumps({**step.description(), "table": step.table}))
        try:
            found = _json(file)
        except ValueError as error:
            raise _another_step(file, f"no JSON: {error}") from None
        if found is None:
            write_json(file, made)
        elif not isinstance(found, dict):
            raise _another_step(file, "no JSON object")
        elif found != made:
            keys = [key for key in {**found, **made} if found.get(key) != made.get(key)]
            raise _another_step(file, f"other {', '.join(keys)}")


def _another_step(file: UPath, why: str) -> AccountingError:
    return AccountingError(
        f"{file}: does not describe the step of that name ({why}), so its rows cannot be reused; "
        "move the file and the step's folders in tables/ elsewhere, or name another warehouse"
    )


def _json(file: UPath) -> dict[str, Any] | None:
    """Null where there is no such file."""
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return content
