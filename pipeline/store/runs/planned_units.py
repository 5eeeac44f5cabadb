"""The planned units of a run, in runs/<name>/units.parquet: a row per planned input, the longest
documents first. A launch plans every document before it executes one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, groupby, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.parquet import opened_parquet, parquet_content
from pipeline.files.storage import as_path, list_paths, read, write
from pipeline.store.shards.damaged_files import check_table
from pipeline.work.units import DocumentWork, Execution, PlannedDocument, Unit

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
"""The columns of units.parquet. `place`: of the document among those that are planned; `chunk`:
null for a unit with questions of several chunks."""
UNIT_KEYS = pa.schema([UNITS.field(name) for name in ("step_id", "unit")])
UnitKey = tuple[str, str]
"""A unit's step_id and name."""
_ROWS_AT_ONCE = 20_000  # of a table or row group
_MOST_TABLES = 16  # that are sorted together; a table takes some megabytes
_OF_UNIT = [name for name in PLANNED.names if name not in ("question_id", "input_sha")]
_OF_DOCUMENT = [name for name in PlannedDocument._fields if name != "units"]
_NO_QUESTION = {None: None}
_FIX = "delete it and start the run again, or name another with run="
KNOWN_ANSWERS = "known_answers.jsonl"  # in the folder of a run that audits raters


def check_planned(file: UPath) -> None:
    """Raise DamagedError unless a run's planned inputs can be read."""
    check_table(file, UNITS, _FIX)


def planned_files(warehouse: UPath) -> list[UPath]:
    return list_paths(warehouse / "runs", "*/units.parquet")


def known_answers_files(warehouse: UPath) -> list[UPath]:
    """The known answers of every run that audits raters."""
    return list_paths(warehouse / "runs", f"*/{KNOWN_ANSWERS}")


def units_in(files: Iterable[UPath]) -> set[UnitKey]:
    """The units in plans, or in files of `write_unit_keys`. Raises DamagedError."""
    units: set[UnitKey] = set()
    for file in files:
        for rows in _batches(file, UNIT_KEYS):
            units.update(zip(rows["step_id"].to_pylist(), rows["unit"].to_pylist(), strict=True))
    return units


def write_unit_keys(file: UPath, units: Iterable[UnitKey]) -> None:
    keys = sorted(units)
    columns = {"step_id": [step_id for step_id, _ in keys], "unit": [unit for _, unit in keys]}
    write(file, parquet_content(UNIT_KEYS, [pa.table(columns, UNIT_KEYS)]))


def left_out_of_plan(plan: Path, before: UPath, column: str) -> set[str]:
    """The values of `column` (document_id or question_id) that the planned units in `before` have
    and the file `plan` lacks. Raises DamagedError."""
    planned = opened_parquet(plan).read([column], use_threads=False)[column].unique()
    missing = set[str]()
    for rows in _batches(before, pa.schema([UNITS.field(column)])):
        values = rows[column].unique()
        missing.update(values.filter(pc.invert(pc.is_in(values, planned))).to_pylist())
    return missing - {None}


def _batches(file: UPath, columns: Any) -> Iterator[Any]:
    check_table(file, columns, _FIX)
    try:
        parquet = opened_parquet(pa.BufferReader(read(file)))
        yield from parquet.iter_batches(_ROWS_AT_ONCE, columns=columns.names, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(file, f"cannot be read ({error}); {_FIX}") from None


def write_plan(file: Path, documents: Iterable[PlannedDocument]) -> None:
    """Write the documents, sorted from longest to shortest within every 320,000 rows or so."""
    write(as_path(file), parquet_content(PLANNED, _row_groups(enumerate(documents))))


def _row_groups(placed: Iterable[tuple[int, PlannedDocument]]) -> Iterator[Any]:
    tables, documents, num_rows = list[Any](), list[tuple[int, PlannedDocument]](), 0
    for place, document in placed:
        documents.append((place, document))
        num_rows += sum(len(unit.inputs) or 1 for unit in document.units)
        if num_rows >= _ROWS_AT_ONCE:
            tables.append(_table(documents))
            documents, num_rows = [], 0
        if len(tables) == _MOST_TABLES:
            yield from _longest_first(tables)
            tables = []
    yield from _longest_first([*tables, _table(documents)])


def _table(documents: Iterable[tuple[int, PlannedDocument]]) -> Any:
    """A row per question of each unit, and one per unit without questions."""
    units = [
        (unit, (unit.step_id, unit.unit, document_id, unit.attempt, unit.chunk, unit.is_done,
                num_words, is_bad, num_questions, place))
        for place, (document_id, num_words, is_bad, num_questions, units) in documents
        for unit in units
    ]  # fmt: skip
    values = zip(*(row for _, row in units), strict=True) if units else ((),) * len(_OF_UNIT)
    asked = [unit.inputs or _NO_QUESTION for unit, _ in units]
    unit_of_row = pa.array(chain.from_iterable(map(repeat, count(), map(len, asked))), pa.int64())
    columns = {name: pa.array(column, PLANNED.field(name).type).take(unit_of_row)
               for name, column in zip(_OF_UNIT, values, strict=True)}  # fmt: skip
    columns["question_id"] = pa.array(chain.from_iterable(asked), pa.string())
    shas = chain.from_iterable(inputs.values() for inputs in asked)
    columns["input_sha"] = pa.array(shas, pa.string())
    return pa.table(columns, PLANNED)


def _longest_first(tables: Iterable[Any]) -> Iterator[Any]:
    rows = pa.concat_tables(tables)
    # The rows of a document stay in their order: the position in the table is the last key.
    positions = pa.array(range(rows.num_rows), pa.int64())
    keys = rows.select(["num_words", "place"]).append_column("row", positions)
    order = [("num_words", "descending"), ("place", "ascending"), ("row", "ascending")]
    rows = rows.take(pc.sort_indices(keys, sort_keys=order))
    for first in range(0, max(1, rows.num_rows), _ROWS_AT_ONCE):
        yield rows.slice(first, _ROWS_AT_ONCE)


def read_plan(file: Path, steps: Collection[str] | None = None) -> Iterator[PlannedDocument]:
    """The documents of a plan, with their units in `steps`; None: with all units."""
    with opened_parquet(file) as parquet:
        batches = parquet.iter_batches(_ROWS_AT_ONCE, use_threads=False)
        if steps is not None:
            wanted = pa.array(sorted(steps), pa.string())
            batches = (rows.filter(pc.is_in(rows["step_id"], wanted)) for rows in batches)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        for _, of_document in groupby(rows, key=lambda row: row["place"]):
            yield _document(list(of_document))


def _document(rows: list[Mapping[str, Any]]) -> PlannedDocument:
    of_units = groupby(rows, key=lambda row: (row["step_id"], row["unit"]))
    units = [_unit(list(of_unit)) for _, of_unit in of_units]
    return PlannedDocument(**{name: rows[0][name] for name in _OF_DOCUMENT}, units=units)


def _unit(rows: list[Mapping[str, Any]]) -> Unit:
    fields = {name: rows[0][name] for name in Unit.__dataclass_fields__ if name != "inputs"}
    inputs = {row["question_id"]: row["input_sha"] for row in rows if row["input_sha"] is not None}
    return Unit(**fields, inputs=inputs)


@dataclass(frozen=True)
class PlannedWork:
    """The work of an execution on a plan's documents. Iteration reads the plan's file, in any
    process of this machine."""

    file: Path
    execution: Execution

    def __iter__(self) -> Iterator[DocumentWork]:
        documents = read_plan(self.file, self.execution.read)
        return chain.from_iterable(map(self.execution.work, documents))
