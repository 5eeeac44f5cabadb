"""Measure the start of a run on many short documents: seconds from the command to the first reply
that is kept, and the driver's memory once all documents are planned. The run is ended then."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import Bar, Figure, figure_with_bar, figure_without_bar
from jobs.config.run_config import RunConfig
from pipeline.core.errors import UsageError

SIZE = "corpus.num_documents"  # the key that may be overridden
WORDS = (
    f"{SIZE}=20000", "corpus=synthetic", "corpus.words=60", "corpus.skew=0.0", "corpus.questions=3",
    "memory=uniform", "methods=gist_only", "rater=none", "engine=simulated", "engine.max_workers=1",
    "engine.sequences=8", "run=night",
)  # fmt: skip
_MOST_SECONDS: tuple[Bar, float] = ("at most", 30.0)
_MOST_MB: tuple[Bar, float] = ("at most", 2048.0)
_SECONDS_OF_PATIENCE = 3600.0


def driver(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds to the first call that is committed, seconds until all is planned, and the driver's
    most memory until then, in MB. Raises UsageError if the run ends before."""
    size = f"{SIZE}={config.model_dump()['corpus']['num_documents']}"
    took = [_started([*WORDS[1:], size], folder / f"warehouse-{pair}") for pair in range(pairs)]
    first, planned, memory = zip(*took, strict=True)
    return [
        figure_with_bar("driver", "seconds to the first reply", first, _MOST_SECONDS),
        figure_without_bar("driver", "seconds until all is planned", planned),
        figure_with_bar("driver", "MB of the driver", memory, _MOST_MB),
    ]


def _started(words: list[str], warehouse: Path) -> tuple[float, float, float]:
    began = time.perf_counter()
    with _run([*words, f"warehouse={warehouse}"]) as process:
        _wait(process, lambda: any(warehouse.glob("tables/calls/*/*.parquet")))
        first = time.perf_counter() - began
        _wait(process, lambda: any(warehouse.glob("runs/night/plan/*.end.parquet")))
        return first, time.perf_counter() - began, _most_mb(process.pid)


@contextmanager
def _run(words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in a process group of its own, which is ended."""
    command = [sys.executable, "-m", "jobs", "run", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
