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
import re
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

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
from tests.chaos.boundary import CRASHED, Boundary
from tests.chaos.night import Night
from tests.chaos.tables import Rows, difference, rows

_SECONDS = 120  # after which a process hangs
_MOST_REPEATED = 40  # requests, by two workers that compete for the same units
_SHARD = re.compile(r"[0-9a-f]{16}\.[1-9]\d*\.parquet")


class CrashTrials:
    """The trials of one seed."""

    def __init__(self, folder: Path, seed: int, url: str | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._url = folder, url
        self._night = Night(folder, seed)
        self.num_crashes = 0
        self.wrong: list[str] = []

    def run(self, number: int) -> None:
        """`number` crash points, evenly spread over the night."""
        code, whole = self._forked(lambda: self._undisturbed(self._warehouse("whole")))
        assert code == 0, whole
        num_points, self._whole = whole
        requests = Counter(self._asked())
        self._asked_whole = requests.total()
        self._asked_once = {sha for sha, times in requests.items() if times == 1}
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
        code, found = self._forked(lambda: self._resumed(warehouse))
        if code != 0:
            return [f"exit code {code}: {found}"]
        wrong, num_kept = found
        asked = self._asked()[before:]
        if self._night.num_workers == 1:
            again = set(sent) & set(asked[len(sent) :]) & self._asked_once
            if len(again) > len(set(sent)) - num_kept:
                wrong.append("a call is repeated though its reply was kept")
        elif len(asked) - self._asked_whole > _MOST_REPEATED:
            wrong.append(f"{len(asked)} requests in place of {self._asked_whole}")
        if self._url is None:
            shutil.rmtree(warehouse, ignore_errors=True)
        return list(wrong)

    def _warehouse(self, name: str) -> str:
        return f"{self._url or self._folder}/{name}"

    def _asked(self) -> list[str]:
        return (self._folder / "asked").read_text().split()

    def _undisturbed(self, warehouse: str) -> tuple[int, Rows]:
        boundary = Boundary(warehouse.removeprefix("s3://"))
        boundary.install()
        self._night.complete(warehouse)
        return boundary.num_points, rows(warehouse)

    def _cut(self, warehouse: str, point: int) -> None:
        Boundary(warehouse.removeprefix("s3://"), point).install()
        self._night.complete(warehouse)

    def _resumed(self, warehouse: str) -> tuple[list[str], int]:
        """What is wrong, and how many replies had been kept."""
        wrong, num_kept = _torn(warehouse, self._night.asking()), len(_kept(warehouse))
        with suppress(UsageError):  # there may be no run yet
            rows(warehouse)  # as a reading verb does after the crash
        self._night.complete(warehouse)
        return wrong + list(map(str, difference(self._whole, rows(warehouse)))), num_kept

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


def _torn(warehouse: str, asking: set[str]) -> list[str]:
    """Shards that cannot be read, and shards of steps that ask without those of their calls (which
    may be compacted and collected before)."""
    is_compacted = (as_path(warehouse) / "compacted").exists()
    torn = []
    for file in as_path(warehouse).glob("tables/*/*/*"):
        calls = as_path(warehouse) / "tables" / "calls" / file.parent.name / file.name
        is_alone = file.parent.name in asking and not calls.exists() and not is_compacted
        if _SHARD.fullmatch(file.name) and (is_alone or not _is_readable(file)):
            torn.append(f"torn: {file}")
    return torn


def _kept(warehouse: str) -> set[str]:
    """What names the requests whose replies are in a warehouse: in rows, or in a journal."""
    folder = as_path(warehouse)
    files = [file for file in folder.glob("*/calls/**/*.parquet") if _is_readable(file)]
    calls = [pq.read_table(io.BytesIO(file.read_bytes())).column("request_sha") for file in files]
    shas = {str(sha) for column in calls for sha in column.to_pylist()}
    for file in folder.glob("journal/*/*.jsonl"):
        for line in file.read_bytes().splitlines():
            with suppress(ValueError):  # a torn or empty line
                shas.add(json.loads(line)["request_sha"])
    return shas


def _is_readable(file: UPath) -> bool:
    try:
        pq.read_table(io.BytesIO(file.read_bytes()))
    except pa.ArrowInvalid:
        return False
    return True


if __name__ == "__main__":
    folder, seed, number, *url = sys.argv[1:]
    trials = CrashTrials(Path(folder), int(seed), url[0] if url else None)
    trials.run(int(number))
    sys.stdout.write(json.dumps([trials.num_crashes, trials.wrong]))
