"""The files in runs/<name>/: config, planned units, provenance, report, progress and heartbeats of
one run, and people/<person>.parquet, the labels that people gave to its answers.

units.parquet has a row per planned input, the longest documents first; a launch plans every
document before it executes one. Progress and heartbeats are advisory: committed shards are the only
record of progress. Labels are no step's rows: no run makes them again.
"""

import json
import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from errno import ENOENT
from functools import partial
from itertools import chain, count, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pydantic import TypeAdapter
from upath import UPath

from pipeline.core.errors import DamagedError, UsageError
from pipeline.core.settings import YAML_LOADER
from pipeline.files import storage
from pipeline.files.parquet import opened_parquet, parquet_content, read_parquet
from pipeline.store.shards.damaged_files import (
    MOVE_STEP,
    DamagedFiles,
    check_table,
    read_parsed,
)
from pipeline.work.units import DocumentWork, Execution, PlannedDocument, Step, Unit

_SECONDS_ALIVE = 30.0  # a worker without a heartbeat for longer counts as dead
KNOWN_ANSWERS = "known_answers.jsonl"  # in the folder of a run that audits raters
UNITS = pa.schema(
    [(name, pa.string()) for name in ("step_id", "unit", "document_id", "question_id")]
)
"""The columns of units.parquet that every version wrote."""
PLANNED = pa.schema(
    [
        *UNITS, ("attempt", pa.int32()), ("input_sha", pa.string()), ("chunk", pa.int32()),
        ("is_done", pa.bool_()), ("num_words", pa.int64()), ("is_bad", pa.bool_()),
        ("num_questions", pa.int32()), ("place", pa.int64()),
    ]
)  # fmt: skip
"""The columns of units.parquet. `place`: the document's position among those planned; `chunk`: null
for a unit with questions of several chunks."""
UnitKey = tuple[str, str]
"""A unit's step_id and name."""
_ROWS_AT_ONCE = 20_000  # in a table or row group
_MOST_TABLES = 16  # that are sorted together; a table takes some megabytes
_NO_QUESTION: dict[Any, Any] = {None: None}
_UNIT_COLUMNS = [field.name for field in fields(Unit) if field.name != "inputs"]
_DOCUMENT_COLUMNS = [name for name in PlannedDocument._fields if name != "units"]
_FIX = "start the run again, which writes it anew, or delete it"
# rater: human:NAME; answer_sha: sha256 of the answer's text, as it was.
PEOPLE = pa.schema(
    [(name, pa.int64() if name == "repeat" else pa.string())
     for name in ("rater", "method", "repeat", "document_id", "question_id", "answer_sha",
                  "label", "comment")]
)  # fmt: skip
ALL_PEOPLE = pa.schema([("run", pa.string()), *PEOPLE])  # of all runs of a warehouse
_labeled_answer = itemgetter("method", "repeat", "document_id", "question_id", "answer_sha")


_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_json_object = _OBJECT.validate_json


class RunFolder:
    """<warehouse>/runs/<name>/, and the steps/ folder that all runs share."""

    def __init__(self, warehouse: storage.AnyPath, name: str) -> None:
        self.warehouse = storage.as_path(warehouse)
        self.path = self.warehouse / "runs" / name
        self.known_answers = self.path / KNOWN_ANSWERS  # of an audit
        self._progress = self.path / "alive" / "progress"
        self._provenance = self.path / "provenance.json"
        self._units = self.path / "units.parquet"
        self.left_out = DamagedFiles()  # among the files that are advisory

    def config(self) -> dict[str, Any] | None:
        """The config the run was last started with; None for a new run. Raises DamagedError."""

        def parse(content: bytes) -> dict[str, Any]:
            try:
                return _OBJECT.validate_python(yaml.load(content, YAML_LOADER))
            except yaml.YAMLError as error:
                raise ValueError(f"not YAML: {error}") from None

        return read_parsed(self.path / "config.yaml", parse)

    def report_facts(self, *needed: str) -> dict[str, Any]:
        """The config's mapping `report`, with `stages` and the facts in `needed`. Raises UsageError
        for a run of an earlier version that stored fewer facts."""
        facts: Any = (self.config() or {}).get("report")
        if not isinstance(facts, dict) or not facts.keys() >= {"stages", *needed}:
            earlier = "started by an earlier version of gistmill; start it again"
            raise UsageError(f"run={self.path.name}: {earlier}")
        return facts

    def start(
        self, config: Mapping[str, Any], provenance: Mapping[str, Any], has_work: bool
    ) -> None:
        """Write the config, and add this launch's `provenance` to the earlier launches'. A launch
        without pending work makes no rows; it is added only if it is the first."""
        text = yaml.safe_dump(dict(config), sort_keys=False)
        storage.write(self.path / "config.yaml", text.encode())
        before = self.launches()
        if has_work or not before:
            storage.write_json(self._provenance, {"launches": [*before, provenance]})

    def took(self, phase: Mapping[str, Any]) -> None:
        """Record a finished phase's seconds, workers, calls and tokens in the current launch."""
        if not (launches := self.launches()):  # the folder was moved away
            raise storage.refusal_error(self.path, FileNotFoundError(ENOENT, os.strerror(ENOENT)))
        self._record(phases=[*launches[-1].get("phases", []), phase])
        for file in storage.list_paths(self.path / "alive", "*.json"):  # the phase's workers'
            storage.delete(file)

    def ended(self, why: str) -> None:
        """Record why the last launch ended before the run was complete. Advisory."""
        with storage.ignore_refusals():
            self._record(ended=why)

    def _record(self, **facts: Any) -> None:
        *before, launch = self.launches() or [{}]
        if launch and launch != {**launch, **facts}:
            storage.write_json(self._provenance, {"launches": [*before, {**launch, **facts}]})

    def why_ended(self) -> str | None:
        """The reason why the last launch ended early; None if it did not, or recorded none."""
        *_, launch = self.readable_launches() or [{}]
        why: str | None = launch.get("ended")
        return why

    def write_progress(self, launch: str, state: Mapping[str, Any]) -> None:
        """Write the progress of the current launch, for `status`. Advisory."""
        with storage.ignore_refusals():
            storage.write_json(self._progress, {"launch": launch, **state})

    def at_work(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The progress of the current launch and the heartbeats of its live workers; (None, []) if
        no worker is alive."""
        state = storage.read_object(self._progress)
        alive = self.alive(str(state.get("launch")))
        return state if alive else None, alive

    def write_report(self, markdown: str) -> None:
        storage.write(self.path / "report.md", f"{markdown}\n".encode())

    def launches(self) -> list[dict[str, Any]]:
        """The provenance of each launch that made rows, in order. Raises DamagedError."""
        stored = read_parsed(self._provenance, _json_object) or {}
        launches: list[dict[str, Any]] = stored.get("launches", [])
        return launches

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
        import pyarrow.compute as pc  # imported here, as it takes 0.02 s of every command

        missing = set[str]()
        if storage.exists(self._units):
            planned = opened_parquet(plan).read([column], use_threads=False)[column].unique()
            for rows in _batches(self._units, column):
                values = rows[column].unique()
                missing.update(values.filter(pc.invert(pc.is_in(values, planned))).to_pylist())
        return missing - {None}

    def alive(self, launch: str) -> list[dict[str, Any]]:
        """The heartbeats of the launch's workers that are less than 30 seconds old."""
        files = sorted(storage.list_paths(self.path / "alive", "*.json"))
        beats = [storage.read_object(file) for file in files if _age(file) < _SECONDS_ALIVE]
        return [beat for beat in beats if beat.get("launch") == launch]

    def all_gone(self) -> None:
        """Delete progress, heartbeats and in-flight markers. All workers must have ended."""
        with storage.ignore_refusals():
            for file in storage.list_paths(self.path / "alive"):
                storage.delete(file)
            storage.delete_folder(self.path / "in_flight")

    def plan(self, steps: Iterable[Step], plan: Path) -> None:
        """Write the description of each step that has none yet, and store the file `plan`. Raises
        DamagedError if a stored description is another: two steps have the same hash, or the file
        was changed."""

        def describe(step: Step) -> None:
            file = self.warehouse / "steps" / f"{step.id}.json"
            # Through JSON, which turns tuples into lists, to compare it with the file.
            description = json.loads(json.dumps({**step.description(), "table": step.table}))
            stored = read_parsed(file, _json_object, MOVE_STEP)
            if stored is None:
                storage.write_json(file, description)
                return
            stored.pop("sha256", None)  # version 0.2 wrote it
            if any(stored.get(k) != description.get(k) for k in {**stored, **description}):
                what = "describes another step, so its rows cannot be reused"
                raise DamagedError(file, f"{what}; {MOVE_STEP}")

        storage.map_files(describe, steps)
        storage.write(self._units, storage.read(storage.as_path(plan)))


def _age(file: UPath) -> float:
    """Seconds since the file was written; infinite if it no longer exists."""
    try:
        return time.time() - storage.modified_at(file)
    except FileNotFoundError:
        return math.inf


def add_labels(run: UPath, person: str, labels: Sequence[Mapping[str, Any]]) -> int:
    """Add a person's labels to a run's folder; a label of the same answer is replaced. Returns the
    number of new or changed ones. Raises DamagedError."""
    file = run / "people" / f"{person}.parquet"
    before = {_labeled_answer(row): row for row in _labels(file)} if storage.exists(file) else {}
    of_person = {**dict.fromkeys(PEOPLE.names), "rater": f"human:{person}"}
    after = {_labeled_answer(row): row for row in (of_person | dict(label) for label in labels)}
    changed = {answer: row for answer, row in after.items() if before.get(answer) != row}
    if changed:
        table = pa.Table.from_pylist(list((before | changed).values()), schema=PEOPLE)
        storage.write(file, parquet_content(PEOPLE, [table]))
    return len(changed)


def num_labels(run: UPath) -> int:
    """The number of labels in a run's folder; those of damaged files are not counted."""
    count = 0
    for file in storage.list_paths(run, "people/*.parquet"):
        with suppress(DamagedError):
            count += len(_labels(file))
    return count


def people_rows(warehouse: UPath, left_out: DamagedFiles) -> list[dict[str, Any]]:
    """The labels of all runs of a warehouse, as rows of ALL_PEOPLE."""
    none: list[dict[str, Any]] = []
    return [
        {"run": file.parent.parent.name, **label}
        for file in sorted(storage.list_paths(warehouse / "runs", "*/people/*.parquet"))
        for label in left_out.unless_damaged(partial(_labels, file), none)
    ]


def _labels(file: UPath) -> list[dict[str, Any]]:
    check_table(file, PEOPLE, "import the sheet again")
    table = read_parquet(storage.read(file), PEOPLE.names)
    rows: list[dict[str, Any]] = table.cast(PEOPLE).to_pylist()
    return rows


def check_planned(file: UPath) -> None:
    """Raise DamagedError unless a run's planned inputs can be read."""
    check_table(file, UNITS, _FIX)


def planned_files(warehouse: UPath) -> list[UPath]:
    return storage.list_paths(warehouse / "runs", "*/units.parquet")


def units_in(files: Iterable[UPath]) -> set[UnitKey]:
    """The units in plans, or in records of removed runs. Raises DamagedError."""
    units: set[UnitKey] = set()
    for rows in chain.from_iterable(_batches(file, "step_id", "unit") for file in files):
        units.update(zip(rows["step_id"].to_pylist(), rows["unit"].to_pylist(), strict=True))
    return units


def _batches(file: UPath, *columns: str) -> Iterator[Any]:
    check_table(file, pa.schema([UNITS.field(name) for name in columns]), _FIX)
    try:
        parquet = opened_parquet(pa.BufferReader(storage.read(file)))
        yield from parquet.iter_batches(_ROWS_AT_ONCE, columns=[*columns], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(file, f"cannot be read ({error}); {_FIX}") from None


def write_plan(file: Path, documents: Iterable[PlannedDocument]) -> None:
    """Write the documents, sorted from longest to shortest within every 320,000 rows or so."""
    content = parquet_content(PLANNED, _row_groups(documents))
    storage.write(storage.as_path(file), content)


def _row_groups(planned: Iterable[PlannedDocument]) -> Iterator[Any]:
    tables, documents, num_rows = list[Any](), list[tuple[int, PlannedDocument]](), 0
    for number, document in enumerate(planned):
        documents.append((number, document))
        num_rows += sum(len(unit.inputs) or 1 for unit in document.units)
        if num_rows >= _ROWS_AT_ONCE:
            tables.append(_table(documents))
            documents, num_rows = [], 0
        if len(tables) == _MOST_TABLES:
            yield from _longest_first(tables)
            tables = []
    yield from _longest_first([*tables, _table(documents)])


def _table(documents: Iterable[tuple[int, PlannedDocument]]) -> Any:
    """A row for each question of a unit, and one for a unit without questions."""
    units = [(unit, document, number) for number, document in documents for unit in document.units]
    of_units = {name: [getattr(unit, name) for unit, _, _ in units] for name in _UNIT_COLUMNS}
    for name in _DOCUMENT_COLUMNS:
        of_units[name] = [getattr(document, name) for _, document, _ in units]
    of_units["place"] = [number for _, _, number in units]
    inputs = [unit.inputs or _NO_QUESTION for unit, _, _ in units]
    unit_of_row = pa.array(chain.from_iterable(map(repeat, count(), map(len, inputs))), pa.int64())
    columns = {
        name: pa.array(values, PLANNED.field(name).type).take(unit_of_row)
        for name, values in of_units.items()
    }
    columns["question_id"] = pa.array(chain.from_iterable(inputs), pa.string())
    shas = chain.from_iterable(sha_of_question.values() for sha_of_question in inputs)
    columns["input_sha"] = pa.array(shas, pa.string())
    return pa.table(columns, PLANNED)


def _longest_first(tables: Iterable[Any]) -> Iterator[Any]:
    rows = pa.concat_tables(tables)
    # The rows of a document stay in their order: the position in the table is the last key.
    rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    order = [("num_words", "descending"), ("place", "ascending"), ("row", "ascending")]
    rows = rows.sort_by(order).drop_columns(["row"])
    for first in range(0, max(1, rows.num_rows), _ROWS_AT_ONCE):
        yield rows.slice(first, _ROWS_AT_ONCE)


def read_plan(file: Path, steps: Collection[str] | None = None) -> Iterator[PlannedDocument]:
    """The documents of a plan, with their units in `steps`; None: with all units."""
    with opened_parquet(file) as parquet:
        batches = parquet.iter_batches(_ROWS_AT_ONCE, use_threads=False)
        if steps is not None:
            import pyarrow.compute as pc  # imported here, as it takes 0.02 s of every command

            wanted = pa.array(sorted(steps), pa.string())
            batches = (rows.filter(pc.is_in(rows["step_id"], wanted)) for rows in batches)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        for _, of_document in groupby(rows, key=itemgetter("place")):
            units = []
            for _, of_unit in groupby(of_document, key=itemgetter("step_id", "unit")):
                first, *more = of_unit
                inputs = {row["question_id"]: row["input_sha"] for row in (first, *more)}
                inputs = {} if None in inputs.values() else inputs
                units.append(Unit(**{name: first[name] for name in _UNIT_COLUMNS}, inputs=inputs))
            yield PlannedDocument(**{name: first[name] for name in _DOCUMENT_COLUMNS}, units=units)


@dataclass(frozen=True)
class PlannedWork:
    """The work of an execution on a plan's documents, which iteration reads from its file."""

    file: Path
    execution: Execution

    def __iter__(self) -> Iterator[DocumentWork]:
        documents = read_plan(self.file, self.execution.read)
        return chain.from_iterable(map(self.execution.work, documents))
