"""Power cuts at a store's boundary: `python -m tests.chaos.crash_points FOLDER SEED NUMBER [URL]`.

The night of a seed is executed to its end, then again and again in a process that is gone at the
k-th point, for NUMBER k over all of it, and each time once more to its end, which is compared with
the undisturbed one. The warehouses lie in FOLDER, or below URL. Prints the figures as JSON.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
from tests.chaos.boundary import CRASHED, Boundary
from tests.chaos.night import Night
from tests.chaos.tables import Tables, difference, tables

_SECONDS = 120  # after which a process hangs
_SHARD = re.compile(r"[0-9a-f]{16}\.[1-9]\d*\.parquet")


@dataclass
class CrashFigures:
    """Of one seed. `repeated`: requests beyond those of an undisturbed run, most of any point;
    `needlessly`: of one worker those whose replies had been kept before the crash."""

    seed: int
    workers: int
    passed: int = 0  # points of an undisturbed run
    crashes: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    torn: int = 0  # committed names that cannot be read, or rows without their calls
    repeated: int = 0
    needlessly: int = 0
    failed: list[str] = field(default_factory=list)


class CrashTrials:
    """The trials of one seed."""

    def __init__(self, folder: Path, seed: int, url: str | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._url = folder, url
        self._night = Night(folder, seed)
        self.figures = CrashFigures(seed, self._night.num_workers)

    def run(self, number: int) -> CrashFigures:
        """`number` crash points, evenly spread over the night, or all there are."""
        warehouse = self._warehouse("whole")
        code = self._forked(lambda: self._undisturbed(warehouse))
        assert code == 0, (self._folder / "error").read_text()
        self.figures.passed = int((self._folder / "passed").read_text())
        requests = Counter(self._asked())
        self._asked_whole = requests.total()
        self._asked_once = {sha for sha, times in requests.items() if times == 1}
        step = max(1.0, self.figures.passed / number)
        points = sorted({1 + int(step * n) for n in range(min(number, self.figures.passed))})
        for point in points:
            self._trial(point)
        return self.figures

    def _trial(self, point: int) -> None:
        warehouse = self._warehouse(str(point))
        before = len(self._asked())
        code = self._forked(lambda: self._cut(warehouse, point))
        self.figures.crashes += code == CRASHED
        sent = self._asked()[before:]
        if self._forked(lambda: self._resumed(warehouse)) == 0:
            counts = json.loads((self._folder / "counts").read_text())
            again = set(sent) & set(self._asked()[before + len(sent) :]) & self._asked_once
            in_flight = len(set(sent)) - counts.pop("kept")
            needlessly = len(again) - in_flight if self.figures.workers == 1 else 0
            self.figures.needlessly = max(self.figures.needlessly, needlessly)
            for name, value in counts.items():
                setattr(self.figures, name, getattr(self.figures, name) + value)
        else:
            error = (self._folder / "error").read_text().splitlines()[-1]
            self.figures.failed.append(f"point {point}: {error}")
        repeated = len(self._asked()) - before - self._asked_whole
        self.figures.repeated = max(self.figures.repeated, repeated)
        if self._url is None:
            shutil.rmtree(warehouse, ignore_errors=True)

    def _warehouse(self, name: str) -> str:
        return f"{self._url or self._folder}/{name}"

    def _asked(self) -> list[str]:
        return (self._folder / "asked").read_text().split()

    def _undisturbed(self, warehouse: str) -> None:
        boundary = Boundary(self._within(warehouse))
        boundary.install()
        self._night.complete(warehouse)
        (self._folder / "passed").write_text(str(boundary.num_points))
        (self._folder / "tables").write_bytes(pickle.dumps(tables(warehouse)))

    def _cut(self, warehouse: str, point: int) -> None:
        Boundary(self._within(warehouse), point).install()
        self._night.complete(warehouse)

    def _resumed(self, warehouse: str) -> None:
        torn, num_kept = _torn(warehouse, self._night.asking()), len(_kept(warehouse))
        with suppress(UsageError):  # there may be no run yet
            tables(warehouse)  # as a reading verb does after the crash
        self._night.complete(warehouse)
        whole: Tables = pickle.loads((self._folder / "tables").read_bytes())
        wrong = asdict(difference(whole, tables(warehouse)))
        counts = {name: len(keys) for name, keys in wrong.items()}
        counts["changed"] += counts.pop("added")
        (self._folder / "counts").write_text(json.dumps({**counts, "torn": torn, "kept": num_kept}))

    def _within(self, warehouse: str) -> str:
        return warehouse.removeprefix("s3://")

    def _forked(self, what: Callable[[], None]) -> int:
        """Do it in a process of its own; its exit code. Ends it where it hangs."""
        pid = os.fork()
        if pid == 0:
            try:
                what()
            finally:  # the process ends here, whatever ended the work
                if raised := sys.exc_info()[1]:
                    (self._folder / "error").write_text(traceback.format_exc())
                os._exit(1 if raised else 0)
        last = time.monotonic() + _SECONDS
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            time.sleep(0.005)
            if time.monotonic() > last:
                (self._folder / "error").write_text(f"hung for {_SECONDS} s")
                os.kill(pid, signal.SIGKILL)
                last = float("inf")
        return os.waitstatus_to_exitcode(ended[1])


def _torn(warehouse: str, asking: set[str]) -> int:
    """Shards that cannot be read, and shards of steps that ask without those of their calls (which
    may be compacted and collected before)."""
    files = [
        file for file in as_path(warehouse).glob("tables/*/*/*") if _SHARD.fullmatch(file.name)
    ]
    is_compacted = (as_path(warehouse) / "compacted").exists()
    torn = 0
    for file in files:
        calls = as_path(warehouse) / "tables" / "calls" / file.parent.name / file.name
        is_alone = file.parent.name in asking and not calls.exists() and not is_compacted
        torn += is_alone or not _is_readable(file)
    return torn


def _kept(warehouse: str) -> set[str]:
    """What names the requests whose replies are in a warehouse: in rows, or in a journal."""
    folder = as_path(warehouse)
    files = [file for file in folder.glob("*/calls/**/*.parquet") if _is_readable(file)]
    rows = [pq.read_table(io.BytesIO(file.read_bytes())).column("request_sha") for file in files]
    shas = {str(sha) for column in rows for sha in column.to_pylist()}
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
    sys.stdout.write(json.dumps(asdict(trials.run(int(number)))) + "\n")
