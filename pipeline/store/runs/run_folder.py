"""The files of one run: config, planned inputs, provenance, report, progress, heartbeats, and
runs/<name>/people/<person>.parquet, labels that people gave to its answers.

Config and planned inputs are written before execution. Progress and heartbeats are advisory:
committed shards are the only record of progress. No step plans labels, and no run redoes them.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOENT
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from upath import UPath

from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.settings import YAML_LOADER
from pipeline.files.parquet import parquet_content, read_parquet
from pipeline.files.storage import (
    Advisory,
    AnyPath,
    as_path,
    delete,
    delete_folder,
    exists,
    list_paths,
    map_files,
    modified_at,
    read,
    refusal_error,
    write,
    write_json,
)
from pipeline.store.runs.planned_units import KNOWN_ANSWERS, left_out_of_plan
from pipeline.store.shards.damaged_files import (
    MOVE_STEP,
    DamagedFiles,
    check_table,
    read_parsed,
)
from pipeline.work.units import Step

_SECONDS_ALIVE = 30.0  # a worker without a heartbeat for longer counts as dead
# rater: human:NAME; answer_sha: sha256 of the answer's text, as it was.
PEOPLE = pa.schema(
    [
        ("rater", pa.string()), ("method", pa.string()), ("repeat", pa.int64()),
        ("document_id", pa.string()), ("question_id", pa.string()), ("answer_sha", pa.string()),
        ("label", pa.string()), ("comment", pa.string()),
    ]
)  # fmt: skip
ALL_PEOPLE = pa.schema([("run", pa.string()), *PEOPLE])  # of all runs of a warehouse
_LABELED = itemgetter("method", "repeat", "document_id", "question_id", "answer_sha")


class _Facts(BaseModel, extra="allow"):
    """The mapping `report` in a run's config."""

    stages: list[str]
    methods: list[str] = []
    judging: list[str] = []
    columns: dict[str, list[dict[str, Any]]] = {}


class _Provenance(BaseModel):
    launches: list[dict[str, Any]] = []


_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_JSON = _OBJECT.validate_json


class RunFolder:
    """<warehouse>/runs/<name>/, and the steps/ folder that all runs share."""

    def __init__(self, warehouse: AnyPath, name: str) -> None:
        self.warehouse = as_path(warehouse)
        self.path = self.warehouse / "runs" / name
        self.known_answers = self.path / KNOWN_ANSWERS  # of an audit
        self._progress = self.path / "alive" / "progress"
        self._units = self.path / "units.parquet"
        self.advisory = Advisory()  # of the progress file and the heartbeats
        self.left_out = DamagedFiles()  # of the files that are advisory

    def config(self) -> dict[str, Any] | None:
        """The config the run was last started with; None for a new run. Raises DamagedError."""
        return read_parsed(self.path / "config.yaml", _config)

    def report_facts(self, *needed: str) -> dict[str, Any]:
        """The part of the config that reading commands need: `stages`, and the facts in `needed`.
        Raises UsageError for a run started by an earlier version, which stored fewer of them."""
        earlier = f"run={self.path.name}: started by an earlier version of gistmill; start it again"
        try:
            report = _Facts.model_validate((self.config() or {}).get("report", {}))
        except ValidationError:
            raise UsageError(earlier) from None
        facts = report.model_dump(exclude_unset=True)
        if not facts.keys() >= set(needed):
            raise UsageError(earlier)
        return facts

    def start(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], has_work: bool
    ) -> None:
        """Write the config, and add this launch's `provenance` to those of earlier launches. A
        launch without pending work makes no rows and is not added, unless it is the first."""
        text = yaml.safe_dump(dict(config), sort_keys=False)
        write(self.path / "config.yaml", text.encode())
        before = self.launches()
        if has_work or not before:
            self._write_launches([*before, provenance])

    def took(self, phase: Mapping[str, Any]) -> None:
        """Record a finished phase's seconds, workers, calls and tokens in the current launch."""
        if not (launches := self.launches()):
            raise refusal_error(self.path, FileNotFoundError(ENOENT, os.strerror(ENOENT)))
        self._record(phases=[*launches[-1].get("phases", []), phase])
        for file in list_paths(self.path / "alive", "*.json"):  # heartbeats of the phase's workers
            delete(file)

    def answered(self, models: Mapping[str, Sequence[str]]) -> None:
        """Record in the last launch's provenance which models answered, by the engine asked."""
        if models:
            self._record(answered_by=models)

    def ended(self, why: str) -> None:
        """Record why the last launch ended before the run was complete. Advisory."""
        with self.advisory.attempt():
            self._record(ended=why)

    def _record(self, **facts: Any) -> None:
        *before, launch = self.launches() or [{}]
        if launch and launch != {**launch, **facts}:
            self._write_launches([*before, {**launch, **facts}])

    def _write_launches(self, launches: Sequence[Mapping[str, Any]]) -> None:
        write_json(self.path / "provenance.json", {"launches": launches})

    def why_ended(self) -> str | None:
        """The reason why the last launch ended early; None if it did not, or recorded none."""
        *_, launch = self.readable_launches() or [{}]
        why: str | None = launch.get("ended")
        return why

    def write_progress(self, launch: str, state: Mapping[str, Any]) -> None:
        """Write the progress of the current launch, for `status`. Advisory."""
        with self.advisory.attempt():
            write_json(self._progress, {"launch": launch, **state})

    def at_work(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The progress of the current launch and the heartbeats of its live workers; (None, []) if
        nothing is running. A worker may write a last heartbeat after its driver has ended, and a
        driver may write while no worker does."""
        state = self.left_out.unless_damaged(partial(read_parsed, self._progress, _JSON), None)
        if state is None:
            return None, []
        heartbeats = self._heartbeats(str(state.get("launch")))
        alive = [beat for age, beat in heartbeats if age < _SECONDS_ALIVE]
        is_written = bool(heartbeats) and _age(self._progress) < _SECONDS_ALIVE
        return state if alive or is_written else None, alive

    def write_report(self, markdown: str) -> None:
        write(self.path / "report.md", f"{markdown}\n".encode())

    def launches(self) -> list[dict[str, Any]]:
        """The provenance of each launch that made rows, in order. Raises DamagedError."""
        stored = read_parsed(self.path / "provenance.json", _Provenance.model_validate_json)
        return stored.launches if stored else []

    def launched_at(self) -> datetime:
        """The time of the first launch; now, if it is not recorded. Raises DamagedError."""
        first, *_ = self.launches() or [{}]
        recorded = first.get("started_at")
        return datetime.fromisoformat(recorded) if recorded else datetime.now(UTC)

    def readable_launches(self) -> list[dict[str, Any]]:
        """As `launches`, but empty if the file is damaged."""
        return self.left_out.unless_damaged(self.launches, [])

    def missing_from(self, plan: Path, column: str) -> set[str]:
        """The values of `column` (document_id or question_id) that the run has planned and the file
        `plan` lacks. Raises DamagedError."""
        return left_out_of_plan(plan, self._units, column) if exists(self._units) else set()

    def alive(self, launch: str) -> list[dict[str, Any]]:
        """The heartbeats of the launch's workers that are less than 30 seconds old."""
        return [beat for age, beat in self._heartbeats(launch) if age < _SECONDS_ALIVE]

    def silent(self, launch: str) -> dict[str, float]:
        """The launch's workers whose last heartbeat is 30 seconds old or older, with its age in
        seconds: they died, hang, or cannot write."""
        ages = {beat["worker"]: round(age, 1) for age, beat in self._heartbeats(launch)}
        return {worker: age for worker, age in ages.items() if age >= _SECONDS_ALIVE}

    def _heartbeats(self, launch: str) -> list[tuple[float, dict[str, Any]]]:
        """Each heartbeat with its age in seconds."""
        beats = []
        for file in sorted(list_paths(self.path / "alive", "*.json")):
            beat = self.left_out.unless_damaged(partial(read_parsed, file, _JSON), None)
            if beat and beat.get("launch") == launch:
                beats.append((_age(file), beat))
        return beats

    def all_gone(self) -> None:
        """Delete progress, heartbeats and in-flight markers; later launches ignore any that remain.
        All workers must have ended."""
        with self.advisory.attempt():
            for file in list_paths(self.path / "alive"):
                delete(file)
            delete_folder(self.path / "in_flight")

    def plan(self, steps: Iterable[Step], plan: Path) -> None:
        """Write each step's description, unless it exists, and store the file `plan`."""
        map_files(self._describe, steps)
        write(self._units, read(as_path(plan)))

    def _describe(self, step: Step) -> None:
        """Write a step's description once. Raises DamagedError if the existing one differs: two
        steps have the same hash, or the file was changed."""
        file = self.warehouse / "steps" / f"{step.id}.json"
        # Through JSON, which turns tuples into lists, to compare it with the file.
        description = json.loads(json.dumps({**step.description(), "table": step.table}))
        stored = read_parsed(file, _JSON, MOVE_STEP)
        if stored is None:
            write_json(file, description)
            return
        stored.pop("sha256", None)  # of version 0.2
        keys = [key for key in {**stored, **description} if stored.get(key) != description.get(key)]
        if keys:
            what = f"does not describe the step of that name (other {', '.join(keys)})"
            raise DamagedError(file, f"{what}, so its rows cannot be reused; {MOVE_STEP}")


def _age(file: UPath) -> float:
    """Seconds since the file was written; infinite if it no longer exists."""
    try:
        return time.time() - modified_at(file)
    except FileNotFoundError:
        return math.inf


def _config(content: bytes) -> dict[str, Any]:
    try:
        return _OBJECT.validate_python(yaml.load(content, YAML_LOADER))
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from None


def add_labels(run: UPath, person: str, labels: Sequence[Mapping[str, Any]]) -> int:
    """Add a person's labels to those of earlier imports into a run's folder; a label of the same
    answer is replaced. Returns the number of new or changed labels. Raises DamagedError."""
    file = run / "people" / f"{person}.parquet"
    before = {_LABELED(row): row for row in _labels(file)} if exists(file) else {}
    of_person = {**dict.fromkeys(PEOPLE.names), "rater": f"human:{person}"}
    rows = [of_person | dict(label) for label in labels]
    changed = {_LABELED(row): row for row in rows if before.get(_LABELED(row)) != row}
    if changed:
        table = pa.Table.from_pylist(list((before | changed).values()), schema=PEOPLE)
        write(file, parquet_content(PEOPLE, [table]))
    return len(changed)


def num_labels(run: UPath) -> int:
    """The number of labels in a run's folder; those of damaged files are not counted."""
    count = 0
    for file in list_paths(run, "people/*.parquet"):
        with suppress(DamagedError):
            count += len(_labels(file))
    return count


def people_rows(warehouse: UPath, left_out: DamagedFiles) -> list[dict[str, Any]]:
    """The labels of all runs of a warehouse, as rows of ALL_PEOPLE."""
    rows: list[dict[str, Any]] = []
    labels: list[dict[str, Any]]
    for file in sorted(list_paths(warehouse / "runs", "*/people/*.parquet")):
        labels = left_out.unless_damaged(partial(_labels, file), [])
        rows += [{"run": file.parent.parent.name, **label} for label in labels]
    return rows


def _labels(file: UPath) -> list[dict[str, Any]]:
    check_table(file, PEOPLE, "import the sheet again")
    rows: list[dict[str, Any]] = read_parquet(read(file), PEOPLE.names).cast(PEOPLE).to_pylist()
    return rows
