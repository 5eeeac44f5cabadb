"""Measure the time of commands on a large warehouse, whose rows are copies of one document's; and
the start of a run on many documents."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from upath import UPath

from benchmarks.figures import Bar, Figure, figure_with_bar, figure_without_bar
from benchmarks.large_runs.copied_rows import write_copies
from jobs.config.run_config import RunConfig
from pipeline.core.errors import UsageError

# Two thousand documents with a hundred questions each: 200,000 questions, 20,000 units.
SIZES = ("corpus.num_documents", "corpus.questions")  # keys that may be overridden
WORDS = (
    "corpus.num_documents=2000", "corpus.questions=100", "run=night", "corpus=synthetic",
    "corpus.words=3000", "corpus.skew=0.0", "memory=uniform", "rater=none", "max_problem_rate=1.0",
    "methods=bm25(top_k=3),gist_only",
)  # fmt: skip
_SECONDS: Mapping[str, tuple[Bar, float]] = {
    "sql": ("at most", 3), "status": ("at most", 2), "report": ("at most", 10),
    "run": ("at most", 20),
}  # fmt: skip
_MOST_MB = 1024.0
DRIVER_WORDS = (
    "corpus.num_documents=20000", "corpus=synthetic", "corpus.words=60", "corpus.skew=0.0",
    "corpus.questions=3", "memory=uniform", "methods=gist_only", "rater=none", "engine=simulated",
    "engine.max_workers=1", "engine.sequences=8", "run=night",
)  # fmt: skip
_MOST_SECONDS: tuple[Bar, float] = ("at most", 30.0)
_MOST_MB_OF_DRIVER: tuple[Bar, float] = ("at most", 2048.0)
_SECONDS_OF_PATIENCE = 3600.0


def scale(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds of `sql` (a count), `status`, `report` and of the same run without pending units,
    each in a process of its own, and the peak memory of the last."""
    config = config.model_copy(update={"warehouse": str(folder / "warehouse")})
    # In a process of its own: the peak memory of a command counts that of the process starting it.
    with ProcessPoolExecutor(1, get_context("spawn")) as writer:
        made = writer.submit(write_copies, config, UPath(folder / "of_one_document"))
        num_units = made.result()
    given = config.model_dump()["corpus"]
    sizes = [f"{key}={given[key.removeprefix('corpus.')]}" for key in SIZES]
    commands = {
        "sql": ("sql", "select count(*) from calls"), "status": ("status",),
        "report": ("report",), "run": ("run", *WORDS[len(SIZES) :], *sizes),
    }  # fmt: skip
    found = [figure_without_bar("scale", "units", [num_units])]
    for name, command in commands.items():
        took = [_took([*command, f"warehouse={config.warehouse}"]) for _ in range(pairs)]
        seconds, memory = zip(*took, strict=True)
        found.append(figure_with_bar("scale", f"seconds of {name}", seconds, _SECONDS[name]))
    found.append(figure_with_bar("scale", "MB of the run", memory, ("at most", _MOST_MB)))
    return found


def _took(words: Sequence[str]) -> tuple[float, float]:
    """The seconds and the megabytes of a command. Raises CalledProcessError if it fails."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "jobs", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - began, used.ru_maxrss / 1024


def driver(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds to the first call that is committed, seconds until all is planned, and the driver's
    most memory until then, in MB. Raises UsageError if the run ends before."""
    size = f"{SIZES[0]}={config.model_dump()['corpus']['num_documents']}"
    took = [
        _started([*DRIVER_WORDS[1:], size], folder / f"warehouse-{pair}") for pair in range(pairs)
    ]
    first, planned, memory = zip(*took, strict=True)
    return [
        figure_with_bar("driver", "seconds to the first reply", first, _MOST_SECONDS),
        figure_without_bar("driver", "seconds until all is planned", planned),
        figure_with_bar("driver", "MB of the driver", memory, _MOST_MB_OF_DRIVER),
    ]


def _started(words: list[str], warehouse: Path) -> tuple[float, float, float]:
    began = time.perf_counter()
    try:
        with _driving([*words, f"warehouse={warehouse}"]) as process:
            _wait(process, lambda: any(warehouse.glob("tables/calls/*/*.parquet")))
            first = time.perf_counter() - began
            _wait(process, lambda: any(warehouse.glob("runs/night/plan/*.end.parquet")))
            return first, time.perf_counter() - began, _most_mb(process.pid)
    finally:
        _remove(warehouse)


@contextmanager
def _driving(words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in a process group of its own, which is ended."""
    command = [sys.executable, "-m", "jobs", "run", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove(warehouse: Path) -> None:
    """Delete the warehouse, to which the ended run's workers may write for some seconds."""
    num_gone = 0
    while num_gone < 3:
        shutil.rmtree(warehouse, ignore_errors=True)
        time.sleep(1.0)
        num_gone = 0 if warehouse.exists() else num_gone + 1


def _wait(process: "subprocess.Popen[bytes]", is_there: Callable[[], bool]) -> None:
    ends = time.monotonic() + _SECONDS_OF_PATIENCE
    while not is_there():
        if process.poll() is not None or time.monotonic() > ends:
            raise UsageError("driver: the run was over before all was planned; take more documents")
        time.sleep(0.1)


def _most_mb(pid: int) -> float:
    """The most memory that a process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) / 1024
