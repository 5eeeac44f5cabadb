"""The lock of a run: one command at a time executes it, another one waits until that has ended."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upath import UPath

from jobs.run.graceful_stop import GracefulStop
from pipeline.store.runs.planned_units import marks_of_removal
from pipeline.store.upkeep.lease import RUN, UPKEEP, Lease, holder, lease

_SECONDS_BETWEEN_LOOKS = 1.0


@contextmanager
def run_lock(folder: UPath, stop: GracefulStop, warn: Callable[[str], None]) -> Iterator[Lease]:
    """Hold the lease of a run, given by its folder, in the `with` block. Waits while another
    command executes the run, or deletes what removed runs had planned; `warn` is given a line if
    one does.

    Raises EndedError at the deadline.
    """
    while True:
        _wait(folder, RUN, f"run {folder.name} is being executed", stop, warn)
        with lease(folder, RUN) as held:
            if held is None:
                continue
            warehouse = folder.parent.parent
            if marks_of_removal(warehouse):  # they stay until that has ended
                _wait(warehouse, UPKEEP, f"{warehouse} is being compacted", stop, warn)
            yield held
            return


def _wait(
    folder: UPath, name: str, what: str, stop: GracefulStop, warn: Callable[[str], None]
) -> None:
    is_known = False
    while other := holder(folder, name):
        if not is_known:
            host, _, pid = other.rpartition("-")
            warn(f"{what} on {host} (process {pid}); waiting for its end, Ctrl-C leaves it alone")
        is_known = True
        stop.look()
        time.sleep(_SECONDS_BETWEEN_LOOKS)
