"""Power cuts at a store's boundary: `python -m tests.chaos.crash_points FOLDER SEED NUMBER [URL]`.

The night of a seed is executed to its end, then again and again in a process that is gone at the
k-th point, for NUMBER k over all of it, and each time once more to its end, which is compared with
the undisturbed one. The warehouses lie in FOLDER, or below URL. Prints as JSON how many processes
were cut and what was wrong afterwards.
"""

import io
import json
import os
import pickle
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
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
        requests = Counter(self._asked())
        self._num_whole = requests.total()
        self._asked_once = {request for request, number in requests.items() if number == 1}
        for n in range(number):
            point = 1 + n * num_points // number
            self.wrong += [f"point {point}: {what}" for what in self._trial(point)]

    def _trial(self, point: int) -> list[str]:
        """What a cut at this point cost that it must not."""
        warehouse = self._warehouse(str(point))
        before = len(self._asked())
        code, _ = self._forked(lambda: self._cut(warehouse, point))
        self.num_crashes += code == CRASHED
        sent = self._asked()[before:]
        code, resumed = self._forked(lambda: self._resumed(warehouse))
        if code != 0:
            return [f"exit code {code}: {resumed}"]
        num_kept, differing = resumed
        wrong = [f"row {row}" for row in differing]
        sent_later = self._asked()[before + len(sent) :]
        repeated = len(sent) + len(sent_later) - self._num_whole
        if repeated > self._most_repeated:
            wrong.append(f"{repeated} requests were sent again")
        again = self._asked_once & {*sent} & {*sent_later}
        if self._night.num_workers == 1 and len(again) > len({*sent}) - num_kept:
            wrong.append(f"requests were sent again whose replies were kept: {again}")
        if self._url is None:
            shutil.rmtree(warehouse, ignore_errors=True)
        return wrong

    def _warehouse(self, name: str) -> str:
        return f"{self._url or self._folder}/{name}"

    def _asked(self) -> list[str]:
        """The requests so far, a line each."""
        return (self._folder / "asked").read_text().split()

    def _undisturbed(self, warehouse: str) -> tuple[int, Rows]:
        boundary = Boundary(warehouse.removeprefix("s3://"))
        boundary.install()
        self._night.complete(warehouse)
        return boundary.num_points, rows(warehouse)

    def _cut(self, warehouse: str, point: int) -> None:
        Boundary(warehouse.removeprefix("s3://"), point).install()
        self._night.complete(warehouse)

    def _resumed(self, warehouse: str) -> tuple[int, list[tuple[str, ...]]]:
        """The replies that the cut process has kept, and a few of the rows that differ in the end.
        A torn shard, or one without its calls, would end the run."""
        num_kept = _num_kept(warehouse)
        with suppress(UsageError):  # there may be no run yet
            rows(warehouse)  # as a reading verb does after the crash
        self._night.complete(warehouse)
        return num_kept, difference(self._whole, rows(warehouse))

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


def _num_kept(warehouse: str) -> int:
    """The requests whose replies are in a row, or in a journal."""
    folder = as_path(warehouse)
    files = (io.BytesIO(file.read_bytes()) for file in folder.glob("*/calls/**/*.parquet"))
    kept = {str(sha) for file in files for sha in pq.read_table(file)["request_sha"].to_pylist()}
    for file in folder.glob("journal/*/*.jsonl"):
        for line in file.read_bytes().splitlines():
            with suppress(ValueError):  # a torn or empty line
                kept.add(json.loads(line)["request_sha"])
    return len(kept)


if __name__ == "__main__":
    folder, seed, number, *url = sys.argv[1:]
    trials = CrashTrials(Path(folder), int(seed), url[0] if url else None)
    trials.run(int(number))
    sys.stdout.write(json.dumps([trials.num_crashes, trials.wrong]))
