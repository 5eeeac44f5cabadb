"""Power cuts at a store's boundary: `python -m tests.chaos.crash_points FOLDER SEED NUMBER [URL]`.

The night of a seed is executed to its end, then again and again in a process that is gone at the
k-th point, for NUMBER k over all of it, and each time once more to its end, which is compared with
the undisturbed one. The warehouses lie in FOLDER, or below URL. Prints as JSON how many processes
were cut and what was wrong afterwards.
"""

import json
import os
import pickle
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.core.errors import UsageError
from tests.chaos.boundary import CRASHED, Boundary
from tests.chaos.night import Night
from tests.chaos.tables import Rows, difference, rows

_SECONDS = 120  # after which a process hangs
# Requests that are sent again: what one worker has in flight at the crash, 1.25 x 2; more where two
# compete for the same units, and in an object store, where journals are written now and then.
_IN_FLIGHT, _MOST_REPEATED = 3, 40


class CrashTrials:
    """The trials of one seed."""

    def __init__(self, folder: Path, seed: int, url: str | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._url = folder, url
        self._night = Night(folder, seed)
        is_alone = self._night.num_workers == 1 and url is None
        self._most_repeated = _IN_FLIGHT if is_alone else _MOST_REPEATED
        self.num_crashes = 0
        self.wrong: list[str] = []

    def run(self, number: int) -> None:
        """`number` crash points, evenly spread over the night."""
        code, whole = self._forked(lambda: self._undisturbed(self._warehouse("whole")))
        assert code == 0, whole
        num_points, self._whole = whole
        self._num_whole = self._num_asked()
        for n in range(number):
            point = 1 + n * num_points // number
            self.wrong += [f"point {point}: {what}" for what in self._trial(point)]

    def _trial(self, point: int) -> list[str]:
        """What a cut at this point cost that it must not."""
        warehouse = self._warehouse(str(point))
        before = self._num_asked()
        code, _ = self._forked(lambda: self._cut(warehouse, point))
        self.num_crashes += code == CRASHED
        code, differing = self._forked(lambda: self._resumed(warehouse))
        if code != 0:
            return [f"exit code {code}: {differing}"]
        wrong = [f"row {row}" for row in differing]
        repeated = self._num_asked() - before - self._num_whole
        if repeated > self._most_repeated:
            wrong.append(f"{repeated} requests were sent again")
        if self._url is None:
            shutil.rmtree(warehouse, ignore_errors=True)
        return wrong

    def _warehouse(self, name: str) -> str:
        return f"{self._url or self._folder}/{name}"

    def _num_asked(self) -> int:
        """The requests so far, a line each."""
        return len((self._folder / "asked").read_text().splitlines())

    def _undisturbed(self, warehouse: str) -> tuple[int, Rows]:
        boundary = Boundary(warehouse.removeprefix("s3://"))
        boundary.install()
        self._night.complete(warehouse)
        return boundary.num_points, rows(warehouse)

    def _cut(self, warehouse: str, point: int) -> None:
        Boundary(warehouse.removeprefix("s3://"), point).install()
        self._night.complete(warehouse)

    def _resumed(self, warehouse: str) -> list[tuple[str, ...]]:
        """A few of the rows that differ in the end. A torn shard, or one without its calls, would
        end the run."""
        with suppress(UsageError):  # there may be no run yet
            rows(warehouse)  # as a reading verb does after the crash
        self._night.complete(warehouse)
        return difference(self._whole, rows(warehouse))

    def _forked(self, what: Callable[[], object]) -> tuple[int, Any]:
        """Do it in a process of its own, which is ended where it hangs. Returns its exit code, and
        what it returned or raised."""
        result = self._folder / "result"
        result.write_bytes(pickle.dumps(f"no end within {_SECONDS} s"))
        pid = os.fork()
        if pid == 0:
            returned: object = None
            try:
                returned = what()
            finally:  # the process ends here, whatever ended the work
                raised = sys.exc_info()[1]
                result.write_bytes(pickle.dumps(traceback.format_exc() if raised else returned))
                os._exit(1 if raised else 0)
        last = time.monotonic() + _SECONDS
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            time.sleep(0.005)
            if time.monotonic() > last:
                os.kill(pid, signal.SIGKILL)
                last = float("inf")
        return os.waitstatus_to_exitcode(ended[1]), pickle.loads(result.read_bytes())


if __name__ == "__main__":
    folder, seed, number, *url = sys.argv[1:]
    trials = CrashTrials(Path(folder), int(seed), url[0] if url else None)
    trials.run(int(number))
    sys.stdout.write(json.dumps([trials.num_crashes, trials.wrong]))
