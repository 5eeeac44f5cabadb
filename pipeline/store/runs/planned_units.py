"""The planned units of a run, in runs/<name>/units.parquet, and the plan of a launch, in
runs/<name>/plan/: Parquet files with the units of every document that is planned, a row per planned
input, the longest documents of each file first.

Whoever executes the run reads the files of the plan one after another, the first while later ones
are not written yet. The last file has `end` in its name.
"""

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOENT
from itertools import chain, count, groupby, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.parquet import opened_parquet, parquet_content, read_parquet
from pipeline.files.place import list_paths, read, write
from pipeline.files.storage_retries import refusal_error
from pipeline.store.shards.damaged_files import check_table
from pipeline.work.executions import DocumentWork, Execution, PlannedDocument
from pipeline.work.steps import Step
from pipeline.work.units import Committed, Unit

UNITS = pa.schema(
    [(name, pa.string()) for name in ("step_id", "unit", "document_id", "question_id")]
)
PLANNED = pa.schema([*UNITS, ("plan_sha", pa.string()), ("attempt", pa.int32())])
"""The columns of units.parquet; earlier versions wrote those of `UNITS`. `plan_sha`: a hash of all
that the units of the row's document follow from."""
UNIT_KEYS = pa.schema([UNITS.field(name) for name in ("step_id", "unit")])
UnitKey = tuple[str, str]
"""A unit's step_id and name."""
PLAN = "plan"  # the folder of the current launch's plan, in that of a run
_ROWS_AT_ONCE = 20_000  # of a table or row group
_MEND = "delete it and start the run again, or name another with run="
KNOWN_ANSWERS = "known_answers.jsonl"  # in the folder of a run that audits raters


def check_planned(file: UPath) -> None:
    """Raise DamagedError unless a run's planned inputs can be read."""
    check_table(file, UNITS, _MEND)


def planned_files(warehouse: UPath) -> list[UPath]:
    """The planned units of every run."""
    return list_paths(warehouse / "runs", "*/units.parquet")


def files_of_run(folder: UPath) -> list[UPath]:
    """The planned units of a run, given by its folder, and the plan of a launch that was killed."""
    return [*list_paths(folder, "units.parquet"), *list_paths(folder / PLAN, "*.parquet")]


def known_answers_files(warehouse: UPath) -> list[UPath]:
    """The file of known answers that every audit of raters has in its run's folder."""
    return list_paths(warehouse / "runs", f"*/{KNOWN_ANSWERS}")


def units_in(files: Iterable[UPath]) -> set[UnitKey]:
    """The units in these files. Raises DamagedError if one cannot be read."""
    found: set[UnitKey] = set()
    for file in files:
        check_planned(file)
        rows = read_parquet(read(file), UNIT_KEYS.names).group_by(UNIT_KEYS.names).aggregate([])
        found |= set(zip(*(rows[name].to_pylist() for name in UNIT_KEYS.names), strict=True))
    return found


def planned_inputs(folder: UPath, before: UPath, kept: Collection[str]) -> Iterator[Any]:
    """The rows of runs/<name>/units.parquet: a table with the columns `PLANNED` of each file that
    is written so far; and what the file `before` it has of the documents `kept`."""
    for file in sorted(list_paths(folder, "*.parquet")):
        yield opened_parquet(pa.BufferReader(read(file))).read(PLANNED.names, use_threads=False)
    if kept:
        documents = pa.array(sorted(kept))
        for rows in _batches(before, PLANNED.names):
            own = rows.filter(pc.is_in(rows["document_id"], documents))
            yield pa.Table.from_batches([own])


def left_out_of_plan(folder: UPath, before: UPath, column: str, kept: Collection[str]) -> set[str]:
    """The values of document_id or question_id in a run's planned units of `before` that its plan
    does not have, but for those of the documents `kept`. Raises DamagedError."""
    check_planned(before)
    own = planned_inputs(folder, before, ())
    new = pa.chunked_array((rows[column].unique() for rows in own), pa.string())
    documents, found = pa.array(sorted(kept), pa.string()), set[str]()
    for rows in _batches(before, sorted({column, "document_id"})):
        old = rows.filter(pc.invert(pc.is_in(rows["document_id"], documents)))[column].unique()
        found |= {*old.filter(pc.invert(pc.is_in(old, new))).to_pylist()}
    return found - {None}


def finished_documents(file: UPath, steps: Sequence[Step], committed: Committed) -> dict[str, str]:
    """By document the `plan_sha` in a run's planned units, of those all of whose units are
    committed as planned, and not to be planned again. Raises DamagedError."""
    check_planned(file)
    by_id = {step.id: step for step in steps}
    found, unfinished = dict[str, str](), set[str]()
    for step_id, unit, attempt, document_id, plan_sha in _units_of_documents(file):
        is_done = step_id in by_id and committed.attempt(step_id, unit) == attempt
        if is_done and not committed.needs_retry(by_id[step_id], unit):
            found[document_id] = plan_sha
        else:
            unfinished.add(document_id)
    return {document_id: own for document_id, own in found.items() if document_id not in unfinished}


def _units_of_documents(file: UPath) -> Iterator[tuple[Any, ...]]:
    """The units in a run's planned units, but in those of an earlier version. The rows of a unit
    stand together."""
    if set(PLANNED.names) - {*opened_parquet(pa.BufferReader(read(file))).schema_arrow.names}:
        return
    names = ["step_id", "unit", "attempt", "document_id", "plan_sha"]
    for rows in _batches(file, names):
        step, unit = rows["step_id"], rows["unit"]
        differs = pc.or_(pc.not_equal(step[1:], step[:-1]), pc.not_equal(unit[1:], unit[:-1]))
        firsts = [0, *(place + 1 for place in pc.indices_nonzero(differs).to_pylist())]
        columns = [rows[name].take(pa.array(firsts)).to_pylist() for name in names]
        yield from zip(*columns, strict=True)


def _batches(file: UPath, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of a run's planned units, some at a time. Raises DamagedError."""
    try:
        parquet = opened_parquet(pa.BufferReader(read(file)))
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False):
            if batch.num_rows:
                yield batch
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(file, f"cannot be read ({error}); {_MEND}") from None


# place: of the document among those that are planned. chunk: null for a unit with questions of
# several chunks.
_SCHEMA = pa.schema(
    [
        *PLANNED, ("input_sha", pa.string()), ("chunk", pa.int32()),
        ("is_done", pa.bool_()), ("num_words", pa.int64()), ("is_bad", pa.bool_()),
        ("num_questions", pa.int32()), ("place", pa.int64()),
    ]
)  # fmt: skip
_MOST_TABLES = 16  # of a file; a table takes some megabytes
_OF_UNIT = [name for name in _SCHEMA.names if name not in ("question_id", "input_sha")]
_OF_DOCUMENT = [name for name in PlannedDocument._fields if name != "units"]
_NO_QUESTION = {None: None}
_SECONDS_BETWEEN_LOOKS = 0.5


def write_plan(
    folder: UPath, documents: Iterable[PlannedDocument], seconds: float = math.inf
) -> Iterator[bool]:
    """Write the documents, those that come within `seconds` into one file, but no more than memory
    allows; yields for every file that is written whether it is the last."""
    numbers, tables, some = count(), list[Any](), list[tuple[int, PlannedDocument]]()
    num_rows, began = 0, time.monotonic()
    for placed in enumerate(documents):
        some.append(placed)
        num_rows += sum(len(unit.inputs) or 1 for unit in placed[1].units)
        if num_rows >= _ROWS_AT_ONCE:
            tables.append(_table(some))
            some, num_rows = [], 0
        if time.monotonic() - began > seconds or len(tables) == _MOST_TABLES:
            _write(folder, f"{next(numbers):06}", [*tables, _table(some)])
            yield False
            tables, some, num_rows, began = [], [], 0, time.monotonic()
    _write(folder, f"{next(numbers):06}.end", [*tables, _table(some)])
    yield True


def _table(documents: Iterable[tuple[int, PlannedDocument]]) -> Any:
    """A row per planned input: of each unit one, repeated for its questions."""
    of_units = [
        (unit, (unit.step_id, unit.unit, document_id, plan_sha, unit.attempt, unit.chunk,
                unit.is_done, num_words, is_bad, num_questions, place))
        for place, (document_id, num_words, is_bad, num_questions, units, plan_sha) in documents
        for unit in units
    ]  # fmt: skip
    columns = zip(*(row for _, row in of_units), strict=True) if of_units else ((),) * len(_OF_UNIT)
    asked = [unit.inputs or _NO_QUESTION for unit, _ in of_units]
    rows = pa.array(chain.from_iterable(map(repeat, count(), map(len, asked))), pa.int64())
    of_unit = {name: pa.array(own, _SCHEMA.field(name).type).take(rows)
               for name, own in zip(_OF_UNIT, columns, strict=True)}  # fmt: skip
    of_unit["question_id"] = pa.array(chain.from_iterable(asked), pa.string())
    shas = chain.from_iterable(inputs.values() for inputs in asked)
    of_unit["input_sha"] = pa.array(shas, pa.string())
    return pa.table(of_unit, _SCHEMA)


def _write(folder: UPath, name: str, tables: Iterable[Any]) -> None:
    rows = pa.concat_tables(tables)
    longest_first = [("num_words", "descending"), ("place", "ascending")]
    # The rows of a document stay in their order: the place in the table is the last key.
    own = pa.array(range(rows.num_rows), pa.int64())
    keys = pa.table({"num_words": rows["num_words"], "place": rows["place"], "row": own})
    order = pc.sort_indices(keys, sort_keys=[*longest_first, ("row", "ascending")])
    write(folder / f"{name}.parquet", parquet_content(_SCHEMA, _groups(rows.take(order))))


def _groups(rows: Any) -> Iterator[Any]:
    for first in range(0, max(1, rows.num_rows), _ROWS_AT_ONCE):
        yield rows.slice(first, _ROWS_AT_ONCE)


def read_plan(folder: UPath, steps: Collection[str] | None = None) -> Iterator[PlannedDocument]:
    """The documents of a plan, with their units in `steps`, or in all; those of a file that is not
    written yet as soon as it is. Raises StorageError if the plan is gone."""
    for file in _files(folder):
        yield from read_plan_file(file, steps)


def _files(folder: UPath) -> Iterator[UPath]:
    there: list[UPath] = []
    for number in count():
        while len(there) <= number:
            there = sorted(list_paths(folder, "*.parquet"))
            if not there:
                raise refusal_error(folder, FileNotFoundError(ENOENT, os.strerror(ENOENT)))
            if len(there) <= number:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
        yield there[number]
        if ".end." in there[number].name:
            return


def read_plan_file(file: UPath, steps: Collection[str] | None) -> Iterator[PlannedDocument]:
    """The documents of one file of a plan, with their units in `steps`, or in all."""
    parquet = opened_parquet(pa.BufferReader(read(file)))
    batches = parquet.iter_batches(_ROWS_AT_ONCE, use_threads=False)
    if steps is not None:
        wanted = pa.array(sorted(steps), pa.string())
        batches = (rows.filter(pc.is_in(rows["step_id"], wanted)) for rows in batches)
    rows = chain.from_iterable(batch.to_pylist() for batch in batches)
    for _, own in groupby(rows, key=lambda row: row["place"]):
        yield _document(list(own))


def _document(rows: list[Mapping[str, Any]]) -> PlannedDocument:
    of_units = groupby(rows, key=lambda row: (row["step_id"], row["unit"]))
    units = [_unit(list(own)) for _, own in of_units]
    return PlannedDocument(**{name: rows[0][name] for name in _OF_DOCUMENT}, units=units)


def _unit(rows: list[Mapping[str, Any]]) -> Unit:
    own = {name: rows[0][name] for name in Unit.__dataclass_fields__ if name != "inputs"}
    asked = [row for row in rows if row["input_sha"] is not None]
    inputs = {row["question_id"]: row["input_sha"] for row in asked}
    return Unit(**own, inputs=inputs)


@dataclass(frozen=True)
class PlannedWork:
    """The work of an execution on the documents of each file of a plan, read as it is iterated, in
    whichever process that is."""

    folder: UPath
    execution: Execution

    def __iter__(self) -> Iterator[Iterator[DocumentWork]]:
        for file in _files(self.folder):
            documents = read_plan_file(file, self.execution.read)
            yield chain.from_iterable(map(self.execution.work, documents))
