"""`gistmill rm`: delete a run, and of its rows what no other run uses."""

import dataclasses
from contextlib import ExitStack
from pathlib import Path

from upath import UPath

from jobs.config.options import ReadOptions
from jobs.output.cells import counted
from jobs.run.run_lock import LEASE
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.files.place import is_remote, path_kind
from pipeline.store.runs.people import num_labels
from pipeline.store.shards.layout import check_layout
from pipeline.store.upkeep import compaction, removal
from pipeline.store.upkeep.lease import holder, lease
from pipeline.store.upkeep.removal import Removed


def run_to_remove(options: ReadOptions) -> str:
    """The named run, if it may be removed now. Raises UsageError if there is none of that name, a
    command executes it, or this process was started in a folder that may be deleted."""
    if options.run is None:
        raise UsageError("run= is missing; name the run to delete")
    check_layout(options.warehouse)
    names = removal.run_names(options.warehouse)
    if options.run not in names:
        near = hint(options.run, names)
        raise UsageError(f"run={options.run}: not in {options.warehouse}; {near}")
    _refuse_from_within(options.warehouse)
    _refuse_at_work(options.warehouse, options.run)
    return options.run


def remove(warehouse: UPath, name: str) -> Removed:
    """Delete a run. Raises UsageError if a command executes it, or another process removes or
    compacts, IncompleteError if a lease lapsed; the same command resumes a removal that was
    begun."""
    with ExitStack() as stack:
        removing = stack.enter_context(lease(warehouse / "runs", removal.LEASE))
        if removing is None:
            raise UsageError("another process removes a run of this warehouse; try again later")
        compacting = stack.enter_context(lease(warehouse / "compacted", compaction.LEASE))
        if compacting is None:
            raise UsageError(f"warehouse={warehouse}: another process compacts it; try again later")
        held = (removing, compacting)
        begun = (
            removal.delete_unused_units(warehouse, name, held)
            if removal.is_begun(warehouse, name)
            else None
        )
        folder = warehouse / "runs" / name
        if path_kind(folder) != "directory":
            return begun or Removed(0, 0, 0)
        if stack.enter_context(lease(folder, LEASE)) is None:
            raise UsageError(f"run={name}: a command executes it now; stop it first")
        labels = num_labels(folder)
        removal.delete_run_folder(warehouse, name)
        return dataclasses.replace(
            removal.delete_unused_units(warehouse, name, held), labels=labels
        )


def _refuse_from_within(warehouse: UPath) -> None:
    here = Path.cwd()
    if not is_remote(warehouse) and warehouse.resolve() in here.parents:
        raise UsageError(f"{here}: rm may delete this folder of the warehouse; call it elsewhere")


def _refuse_at_work(warehouse: UPath, name: str) -> None:
    if at_work := holder(warehouse / "runs" / name, LEASE):
        host, _, pid = at_work.rpartition("-")
        raise UsageError(f"run={name}: being executed on {host} (process {pid}); stop it first")


def removal_line(name: str, removed: Removed) -> str:
    """A line about the removal."""
    labels = f", {counted(removed.labels, 'label')} of people" if removed.labels else ""
    kept = f"; {removed.kept_units:,} units that other runs use stay" if removed.kept_units else ""
    return f"deleted run {name}: {removed.files:,} files, {removed.bytes:,} bytes{labels}{kept}"
