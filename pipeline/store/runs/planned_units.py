"""The planned units of a run, in runs/<name>/units.parquet: written and checked."""

from collections.abc import Iterable

import pyarrow as pa
from upath import UPath

from pipeline.files.parquet import read_parquet
from pipeline.files.place import list_paths, read
from pipeline.store.shards.footers import check_table

UNITS = pa.schema(
    [(name, pa.string()) for name in ("step_id", "unit", "document_id", "question_id")]
)
PLANNED = pa.schema([*UNITS, ("rows_sha", pa.string()), ("attempt", pa.int32())])
"""The columns of units.parquet; earlier versions wrote those of `UNITS`. `rows_sha`: of the
document and its questions."""
UNIT_KEYS = pa.schema([UNITS.field(name) for name in ("step_id", "unit")])
UnitKey = tuple[str, str]
"""A unit's step_id and name."""
PLAN = "plan"  # the folder of the current launch's plan, in that of a run
KNOWN_ANSWERS = "known_answers.jsonl"  # in the folder of a run that audits raters


def check_planned(file: UPath) -> None:
    """Raise DamagedError unless a run's planned inputs can be read."""
    check_table(file, UNITS, "delete it and start the run again, or name another with run=")


def planned_files(warehouse: UPath) -> list[UPath]:
    """The planned units of every run."""
    return list_paths(warehouse / "runs", "*/units.parquet")


def files_of_run(folder: UPath) -> list[UPath]:
    """The planned units of a run, given by its folder, and the plan of a launch that was killed."""
    return [*list_paths(folder, "units.parquet"), *list_paths(folder / PLAN, "*.parquet")]


def known_answers_files(warehouse: UPath) -> list[UPath]:
    """The file of known answers that every audit of raters has in its run's folder."""
    return list_paths(warehouse / "runs", f"*/{KNOWN_ANSWERS}")


def marks_of_removal(warehouse: UPath) -> list[UPath]:
    """The planned units of every run that was removed, until what it alone had used is deleted."""
    return list_paths(warehouse / "removed", "*.parquet")


def units_in(files: Iterable[UPath]) -> set[UnitKey]:
    """The units in these files. Raises DamagedError if one cannot be read."""
    found: set[UnitKey] = set()
    for file in files:
        check_planned(file)
        rows = read_parquet(read(file), UNIT_KEYS.names).group_by(UNIT_KEYS.names).aggregate([])
        found |= set(zip(*(rows[name].to_pylist() for name in UNIT_KEYS.names), strict=True))
    return found
