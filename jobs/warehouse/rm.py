"""`gistmill rm`: delete a run; its files stay for the retention."""

from pathlib import Path

from upath import UPath

from jobs.config.options import ReadOptions
from jobs.output.cells import counted
from pipeline.core.errors import UsageError
from pipeline.core.registry import hint
from pipeline.files.place import is_remote
from pipeline.store.shards.layout import check_layout
from pipeline.store.upkeep.garbage import Removed, mark_removed, run_names
from pipeline.store.upkeep.lease import RUN, holder, lease


def run_to_remove(options: ReadOptions) -> str:
    """The named run, if it may be removed now. Raises UsageError if there is none of that name, a
    command executes it, or this process was started in a folder that may be deleted."""
    if options.run is None:
        raise UsageError("run= is missing; name the run to delete")
    check_layout(options.warehouse)
    names = run_names(options.warehouse)
    if options.run not in names:
        near = hint(options.run, names)
        raise UsageError(f"run={options.run}: not in {options.warehouse}; {near}")
    here = Path.cwd()
    if not is_remote(options.warehouse) and options.warehouse.resolve() in here.parents:
        raise UsageError(f"{here}: rm may delete this folder of the warehouse; call it elsewhere")
    if at_work := holder(options.warehouse / "runs" / options.run, RUN):
        host, _, pid = at_work.rpartition("-")
        raise UsageError(
            f"run={options.run}: being executed on {host} (process {pid}); stop it first"
        )
    return options.run


def remove(warehouse: UPath, name: str) -> Removed:
    """Mark a run as removed. Raises UsageError if a command executes it; the same command resumes
    one that was killed."""
    with lease(warehouse / "runs" / name, RUN) as held:
        if held is None:
            raise UsageError(f"run={name}: a command executes it now; stop it first")
        return mark_removed(warehouse, name)


def removal_line(name: str, removed: Removed) -> str:
    """A line about the removal."""
    labels = f", {counted(removed.labels, 'label')} of people" if removed.labels else ""
    kept = f", {removed.kept_units:,} of which stay for other runs" if removed.kept_units else ""
    return (
        f"deleted run {name}: {removed.units:,} units{kept}{labels}; gistmill gc deletes their "
        "files after 24 hours"
    )
