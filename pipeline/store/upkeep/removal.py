"""Removal of runs: `mark_removed` takes a run away from every command at once; what it alone had
planned stays for readers that chose their files before, and is deleted by `collect`.

The mark is <warehouse>/removed/<run>.<hex>.parquet, the run's planned units. A run that is started
meanwhile and plans some of them has them again.
"""

import uuid
from dataclasses import dataclass

from upath import UPath

from pipeline.files.place import delete, delete_folder, exists, list_paths, read, write
from pipeline.store.runs.people import num_labels
from pipeline.store.runs.planned_units import planned_files, units_in


@dataclass(frozen=True)
class Removed:
    """The units of a removed run, how many of them stay, as other runs use them, and the labels
    that people gave to its answers."""

    units: int = 0
    kept_units: int = 0
    labels: int = 0


def run_names(root: UPath) -> list[str]:
    """The runs that can be removed."""
    folders = {file.parent.name for file in list_paths(root / "runs", "*/*")}
    return sorted(name for name in folders if not name.startswith("."))


def mark_removed(root: UPath, name: str) -> Removed:
    """Mark a run as removed and delete its folder. Hold its lease.

    Raises DamagedError if planned units cannot be read.
    """
    planned = root / "runs" / name / "units.parquet"
    removed = Removed(labels=num_labels(planned.parent))
    if exists(planned):
        own = units_in([planned])
        others = units_in(file for file in planned_files(root) if file != planned)
        removed = Removed(len(own), len(own & others), removed.labels)
        write(root / "removed" / f"{name}.{uuid.uuid4().hex}.parquet", read(planned))
        delete(planned)  # from here on no command sees the run
    delete_folder(planned.parent)
    return removed
