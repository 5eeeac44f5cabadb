"""The plan of a launch, in runs/<name>/plan/: Parquet files with the units of every document that
is planned, a row per planned input, the longest documents of each file first.

Whoever executes the run reads the files one after another, the first while later ones are not
written yet. The last file has `end` in its name.
"""

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from errno import ENOENT
from itertools import chain, count, groupby, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.files.parquet import opened_parquet, parquet_content
from pipeline.files.place import list_paths, read, write
from pipeline.files.storage_retries import refusal_error
from pipeline.store.runs.planned_units import PLANNED
from pipeline.work.executions import DocumentWork, Execution, PlannedDocument
from pipeline.work.units import Unit

# place: of the document among those that are planned. chunk: null for a unit with questions of
# several chunks.
_SCHEMA = pa.schema(
    [
        *PLANNED, ("input_sha", pa.string()), ("chunk", pa.int32()),
        ("is_done", pa.bool_()), ("num_words", pa.int64()), ("is_bad", pa.bool_()),
        ("num_questions", pa.int32()), ("place", pa.int64()),
    ]
)  # fmt: skip
_ROWS_AT_ONCE = 20_000  # of a table or row group
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
