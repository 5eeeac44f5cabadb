"""The lock of a run: one command at a time executes it, another one waits until that has ended."""

import time
from collections.abc import Callable

from upath import UPath

from jobs.run.graceful_stop import GracefulStop
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.upkeep.lease import holder, times_taken
from pipeline.store.upkeep.removal import LEASE as REMOVAL

LEASE = "run"  # its name in the run's folder
_SECONDS_BETWEEN_LOOKS = 1.0


def count_removals(warehouse: UPath) -> int:
    """The number of removals of runs so far; waits while one is at work. A run that was planned
    before the number changed must plan again: units that it found may be deleted."""
    while holder(warehouse / "runs", REMOVAL):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return times_taken(warehouse / "runs", REMOVAL)


def wait_for_others(folder: RunFolder, stop: GracefulStop, warn: Callable[[str], None]) -> None:
    """Wait until no other command executes the run; `warn` is given a line if one does.

    Raises EndedError at the deadline.
    """
    is_known = False
    while other := holder(folder.path, LEASE):
        if not is_known:
            host, _, pid = other.rpartition("-")
            warn(
                f"run {folder.path.name} is being executed on {host} (process {pid}); waiting for "
                "its end, Ctrl-C leaves it alone"
            )
        is_known = True
        stop.look()
        time.sleep(_SECONDS_BETWEEN_LOOKS)
