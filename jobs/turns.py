"""One command at a time executes a run: another one waits until it has ended."""

import time
from collections.abc import Callable

from upath import UPath

from jobs.ending import Ending
from pipeline.store.lease import holder, times_taken
from pipeline.store.removal import LEASE as REMOVAL
from pipeline.store.runs import RunFolder

LEASE = "run"  # its name in the run's folder
_SECONDS_BETWEEN_LOOKS = 1.0


def removals(warehouse: UPath) -> int:
    """How many removals of runs have begun; returns when none is at work. A run that has planned
    since must plan again where the number has changed: units that it found may be deleted."""
    while holder(warehouse / "runs", REMOVAL):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return times_taken(warehouse / "runs", REMOVAL)


def wait_for_others(folder: RunFolder, ending: Ending, warn: Callable[[str], None]) -> None:
    """Return when no other command executes the run; `warn` is given a line if one does.

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
        ending.look()
        time.sleep(_SECONDS_BETWEEN_LOOKS)
