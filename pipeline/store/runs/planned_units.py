"""The planned units of a run, in runs/<name>/units.parquet: written and checked."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.parquet import opened_parquet, read_parquet
from pipeline.files.place import list_paths, read
from pipeline.store.shards.footers import check_table
from pipeline.work.steps import Step
from pipeline.work.units import Committed

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
_ROWS_AT_ONCE = 20_000
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
