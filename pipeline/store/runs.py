"""The files of one run: its config, its provenance and its planned inputs.

They are written before execution. Committed shards are the only record of progress.
"""

import io
import json
import os
import time
from collections.abc import Iterable, Mapping
from errno import ENOENT
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from upath import UPath

from pipeline.errors import AccountingError, UsageError
from pipeline.place import (
    AnyPath,
    delete,
    delete_folder,
    each,
    is_file,
    listed,
    modified,
    place,
    read,
    write,
)
from pipeline.retries import Advisory, refused
from pipeline.steps import Step
from pipeline.store.shards import parquet, write_json
from pipeline.store.views import UNITS
from pipeline.units import Unit

_SECONDS_ALIVE = 30.0  # a worker without a heartbeat for longer counts as dead


class RunFolder:
    """<warehouse>/runs/<name>/, and the steps/ folder that all runs share."""

    def __init__(self, warehouse: AnyPath, name: str) -> None:
        self.warehouse = place(warehouse)
        self.path = self.warehouse / "runs" / name
        self._progress = self.path / "alive" / "progress"
        self._plan = self.path / "plan.json"
        self.advisory = Advisory()  # of the progress file and the heartbeats

    def config(self) -> dict[str, Any] | None:
        """The config the run was last started with; null for a new run."""
        file = self.path / "config.yaml"
        return yaml.safe_load(read(file)) if is_file(file) else None

    def report_facts(self) -> dict[str, Any]:
        """The part of the config that `report` and other reading commands need.

        Raises UsageError for a run started by an earlier version, which stored less of it.
        """
        facts: dict[str, Any] = (self.config() or {}).get("report", {})
        if "stages" not in facts:
            raise UsageError(
                f"run={self.path.name}: started by an earlier version of gistmill; start it again"
            )
        return facts

    def start(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], has_work: bool
    ) -> None:
        """Write the config, and add this launch's `provenance` to those of earlier launches.

        A launch without pending work makes no rows and is not added, unless it is the first.
        """
        write(self.path / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False).encode())
        before = self.launches()
        if has_work or not before:
            launches = {"launches": [*before, provenance]}
            write_json(self.path / "provenance.json", launches)

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Store the result of `gistmill plan`, replacing an earlier one."""
        write(self._plan, json.dumps(plan, indent=1).encode())

    def plan_made(self) -> dict[str, Any] | None:
        """The stored result of `gistmill plan`; null without one."""
        return _json(self._plan)

    def took(self, phase: Mapping[str, Any]) -> None:
        """Record what a phase of the current launch took: seconds, workers, calls and tokens."""
        if not (launches := self.launches()):
            raise refused(self.path, FileNotFoundError(ENOENT, os.strerror(ENOENT)))
        *before, launch = launches
        launch = {**launch, "phases": [*launch.get("phases", []), phase]}
        write_json(self.path / "provenance.json", {"launches": [*before, launch]})
        for file in listed(self.path / "alive", "*.json"):  # heartbeats of the phase's workers
            delete(file)

    def write_progress(self, launch: str, state: Mapping[str, Any]) -> None:
        """Write the progress of the current launch, for `status`. Advisory."""
        with self.advisory.attempt():
            write_json(self._progress, {"launch": launch, **state})

    def at_work(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The progress of the current launch and the heartbeats of its live workers.

        (null, []) where nothing is running. Heartbeats may come without progress: a worker may
        write a last one after its driver has gone. Progress comes without heartbeats where all
        workers are silent and the driver is not.
        """
        state = _json(self._progress)
        if state is None:
            return None, []
        workers = self.alive(state["launch"])
        is_written = time.time() - modified(self._progress) < _SECONDS_ALIVE
        is_running = workers or (is_written and self.silent(state["launch"]))
        return state if is_running else None, workers

    def write_report(self, markdown: str) -> None:
        write(self.path / "report.md", f"{markdown}\n".encode())

    def launches(self) -> list[dict[str, Any]]:
        """The provenance of the run's rows: one entry per launch that made some, in order."""
        found = _json(self.path / "provenance.json") or {"launches": []}
        launches: list[dict[str, Any]] = found["launches"]
        return launches

    def planned(self, column: str) -> set[str]:
        """The values of `column` (document_id or question_id) that the run has planned so far."""
        file = self.path / "units.parquet"
        if not is_file(file):
            return set()
        values = pq.read_table(io.BytesIO(read(file)), columns=[column])[column]
        return set(values.unique().to_pylist()) - {None}

    def alive(self, launch: str) -> list[dict[str, Any]]:
        """The heartbeats of the launch's workers that are less than 30 seconds old."""
        found = self._heartbeats(launch)
        return [heartbeat for age, heartbeat in found if age < _SECONDS_ALIVE]

    def silent(self, launch: str) -> dict[str, float]:
        """The launch's workers whose last heartbeat is older, with its age in seconds: they died,
        hang, or cannot write."""
        found = self._heartbeats(launch)
        return {one["worker"]: round(age, 1) for age, one in found if age >= _SECONDS_ALIVE}

    def _heartbeats(self, launch: str) -> list[tuple[float, dict[str, Any]]]:
        """The heartbeats of a launch, each with its age in seconds."""
        found = []
        for file in sorted(listed(self.path / "alive", "*.json")):
            try:
                heartbeat, age = json.loads(read(file)), time.time() - modified(file)
            except (FileNotFoundError, ValueError):  # deleted meanwhile, or no heartbeat
                continue
            if isinstance(heartbeat, dict) and heartbeat.get("launch") == launch:
                found.append((age, heartbeat))
        return found

    def all_gone(self) -> None:
        """Delete progress, heartbeats and in-flight markers. All workers must have ended.

        Advisory: what is left counts for no later launch.
        """
        with self.advisory.attempt():
            for file in listed(self.path / "alive"):
                delete(file)
            delete_folder(self.path / "in_flight")

    def plan(self, steps: Iterable[Step], units: Iterable[Unit]) -> None:
        """Write the description of each step, once, and every input that the run plans."""
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
        """Write a step's description, unless it exists.

        Raises AccountingError where the existing one differs.
        """
        file = self.warehouse / "steps" / f"{step.id}.json"
        # Through JSON, which turns tuples into lists, to compare it with the file.
        made = json.loads(json.dumps({**step.description(), "table": step.table}))
        try:
            found = _json(file)
        except ValueError as error:
            raise _another_step(file, f"not JSON: {error}") from None
        if found is None:
            write_json(file, made)
        elif not isinstance(found, dict):
            raise _another_step(file, "not a JSON object")
        elif found != made:
            keys = [key for key in {**found, **made} if found.get(key) != made.get(key)]
            raise _another_step(file, f"other {', '.join(keys)}")


def _another_step(file: UPath, why: str) -> AccountingError:
    return AccountingError(
        f"{file}: does not describe the step of that name ({why}), so its rows cannot be reused; "
        "move the file and the step's folders in tables/ elsewhere, or name another warehouse"
    )


def _json(file: UPath) -> dict[str, Any] | None:
    """The object in a JSON file; null where the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(read(file))
    except FileNotFoundError:
        return None
    return content
