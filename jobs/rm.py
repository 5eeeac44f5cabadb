"""`gistmill rm`: delete a run, and of its rows what no other run uses."""

import dataclasses
from contextlib import ExitStack
from pathlib import Path

from upath import UPath

from jobs.cells import counted
from jobs.options import ReadOptions
from jobs.turns import LEASE
from pipeline.errors import UsageError
from pipeline.names import hint
from pipeline.place import is_remote, kind
from pipeline.store import compaction, removal
from pipeline.store.layout import check_layout
from pipeline.store.lease import holder, lease
from pipeline.store.people import num_labels
from pipeline.store.removal import Removed


def run_to_remove(options: ReadOptions) -> str:
    """The run that is named, if it may be removed now. Raises UsageError where there is none of
    that name, a command executes it, or this one was started in a folder that may be deleted."""
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
    """Delete a run. Raises UsageError where a command executes it, or another process removes or
    compacts, IncompleteError where a lease lapsed; what was begun then is ended by the same command
    later."""
    with ExitStack() as stack:
        removing = stack.enter_context(lease(warehouse / "runs", removal.LEASE))
        if removing is None:
            raise UsageError("another process removes a run of this warehouse; try again later")
        compacting = stack.enter_context(lease(warehouse / "compacted", compaction.LEASE))
        if compacting is None:
            raise UsageError(f"warehouse={warehouse}: another process compacts it; try again later")
        held = (removing, compacting)
        begun = removal.purge(warehouse, name, held) if removal.is_begun(warehouse, name) else None
        folder = warehouse / "runs" / name
        if kind(folder) != "directory":
            return begun or Removed(0, 0, 0)
        if stack.enter_context(lease(folder, LEASE)) is None:
            raise UsageError(f"run={name}: a command executes it now; stop it first")
        labels = num_labels(folder)
        removal.forget(warehouse, name)
        return dataclasses.replace(removal.purge(warehouse, name, held), labels=labels)


def _refuse_from_within(warehouse: UPath) -> None:
    here = Path.cwd()
    if not is_remote(warehouse) and warehouse.resolve() in here.parents:
        raise UsageError(f"{here}: rm may delete this folder of the warehouse; call it elsewhere")


def _refuse_at_work(warehouse: UPath, name: str) -> None:
    if at_work := holder(warehouse / "runs" / name, LEASE):
        host, _, pid = at_work.rpartition("-")
        raise UsageError(f"run={name}: being executed on {host} (process {pid}); stop it first")


def shown(name: str, removed: Removed) -> str:
    """What was done, on a line."""
    labels = f", {counted(removed.labels, 'label')} of people" if removed.labels else ""
    kept = f"; {removed.kept_units:,} units that other runs use stay" if removed.kept_units else ""
    return f"deleted run {name}: {removed.files:,} files, {removed.bytes:,} bytes{labels}{kept}"


def as_json(name: str, removed: Removed) -> dict[str, object]:
    return {"run": name, **dataclasses.asdict(removed)}
