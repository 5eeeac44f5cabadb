"""The planned units of a run, in runs/<name>/units.parquet: a row per planned input, the longest
documents first. A launch plans every document before it executes one.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain, count, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
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
UnitKey = tuple[str, str]
"""A unit's step_id and name."""
_ROWS_AT_ONCE = 20_000  # of a table or row group
_MOST_TABLES = 16  # that are sorted together; a table takes some megabytes
_NO_QUESTION: dict[Any, Any] = {None: None}
_OF_UNIT = [field.name for field in fields(Unit) if field.name != "inputs"]
_OF_DOCUMENT = [name for name in PlannedDocument._fields if name != "units"]
_FIX = "delete it and start the run again, or name another with run="
KNOWN_ANSWERS = "known_answers.jsonl"  # in the folder of a run that audits raters


def check_planned(file: UPath) -> None:
    """Raise DamagedError unless a run's planned inputs can be read."""
    check_table(file, UNITS, _FIX)


def planned_files(warehouse: UPath) -> list[UPath]:
    return list_paths(warehouse / "runs", "*/units.parquet")


def units_in(files: Iterable[UPath]) -> set[UnitKey]:
    """The units in plans, or in records of removed runs. Raises DamagedError."""
    units: set[UnitKey] = set()
    for rows in chain.from_iterable(_batches(file, "step_id", "unit") for file in files):
        units.update(zip(rows["step_id"].to_pylist(), rows["unit"].to_pylist(), strict=True))
    return units


def left_out_of_plan(plan: Path, before: UPath, column: str) -> set[str]:
    """The values of `column` (document_id or question_id) that the planned units in `before` have
    and the file `plan` lacks. Raises DamagedError."""
    import pyarrow.compute as pc  # imported here, as it takes 0.02 s of every command

    check_planned(before)
    planned = opened_parquet(plan).read([column], use_threads=False)[column].unique()
    missing = set[str]()
    for rows in _batches(before, column):
        values = rows[column].unique()
        missing.update(values.filter(pc.invert(pc.is_in(values, planned))).to_pylist())
    return missing - {None}


def _batches(file: UPath, *columns: str) -> Iterator[Any]:
    check_table(file, pa.schema([UNITS.field(name) for name in columns]), _FIX)
    try:
        parquet = opened_parquet(pa.BufferReader(read(file)))
        yield from parquet.iter_batches(_ROWS_AT_ONCE, columns=[*columns], use_threads=False)
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
    units = [(unit, document, place) for place, document in documents for unit in document.units]
    of_units = {
        "step_id": [unit.step_id for unit, _, _ in units],
        "unit": [unit.unit for unit, _, _ in units],
        "document_id": [document.document_id for _, document, _ in units],
        "attempt": [unit.attempt for unit, _, _ in units],
        "chunk": [unit.chunk for unit, _, _ in units],
        "is_done": [unit.is_done for unit, _, _ in units],
        "num_words": [document.num_words for _, document, _ in units],
        "is_bad": [document.is_bad for _, document, _ in units],
        "num_questions": [document.num_questions for _, document, _ in units],
        "place": [place for _, _, place in units],
    }
    inputs = [unit.inputs or _NO_QUESTION for unit, _, _ in units]
    unit_of_row = pa.array(chain.from_iterable(map(repeat, count(), map(len, inputs))), pa.int64())
    columns = {
        name: pa.array(values, PLANNED.field(name).type).take(unit_of_row)
        for name, values in of_units.items()
    }
    columns["question_id"] = pa.array(chain.from_iterable(inputs), pa.string())
    shas = chain.from_iterable(of_unit.values() for of_unit in inputs)
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
                units.append(Unit(**{name: first[name] for name in _OF_UNIT}, inputs=inputs))
            yield PlannedDocument(**{name: first[name] for name in _OF_DOCUMENT}, units=units)


@dataclass(frozen=True)
class PlannedWork:
    """The work of an execution on a plan's documents. Iteration reads the plan's file, in any
    process of this machine."""

    file: Path
    execution: Execution

    def __iter__(self) -> Iterator[DocumentWork]:
        documents = read_plan(self.file, self.execution.read)
        return chain.from_iterable(map(self.execution.work, documents))
