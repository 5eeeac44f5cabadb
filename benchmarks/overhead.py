"""A run's costs besides its engine: the CPU time of a unit in short documents; and the seconds
and driver memory to start a run on many documents."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import add
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from benchmarks.figures import Figure, figure_of
from jobs.config.run_config import RunConfig
from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import resolve, run_manifest
from jobs.run.graceful_stop import GracefulStop
from jobs.run.launch import RunExecutor, provenance
from pipeline.core.errors import UsageError
from pipeline.store.runs.run_folder import RunFolder

# A page and a question per document: five units with three calls (pagination, gist, answer). The
# engine replies at once.
UNITS_WORDS = (
    "corpus=synthetic", "corpus.num_documents=300", "corpus.words=450", "corpus.skew=0.0",
    "corpus.questions=1", "cluster=inline", "rater=none", "methods=gist_only", "engine=simulated",
    "engine.prefill_tokens_per_second=1e9", "engine.decode_tokens_per_second=1e9",
)  # fmt: skip
_WARM_UP = 10  # documents of a run that is not counted: it imports modules
DRIVER_WORDS = (
    "corpus=synthetic", "corpus.words=60", "corpus.skew=0.0", "corpus.questions=3",
    "memory=uniform", "methods=gist_only", "rater=none", "engine=simulated",
    "engine.max_workers=1", "engine.sequences=8", "run=night",
)  # fmt: skip
DRIVER_SIZE = "corpus.num_documents=20000"
_SECONDS_OF_PATIENCE = 3600.0


def units(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """CPU milliseconds of this process per unit, from the first to the last that a run commits,
    and the kernel's share of them."""
    if config.cluster.name != "inline":
        raise UsageError(f"cluster={config.cluster.name}: units takes inline; leave it out")
    _milliseconds(config.model_copy(update={"limit": _WARM_UP}), folder / "warm")
    costs = [_milliseconds(config, folder / f"{i}") for i in range(pairs)]
    user, system = zip(*costs, strict=True)
    return [
        figure_of("units", "CPU milliseconds of a unit", [*map(add, user, system)]),
        figure_of("units", "of them in the kernel, mostly for its files", system),
    ]


def _milliseconds(config: RunConfig, warehouse: Path) -> tuple[float, float]:
    """CPU milliseconds per unit, in the program and in the kernel."""
    prepared = prepare(resolve(config), warehouse, lambda line: None)
    run_folder = RunFolder(prepared.shards.warehouse, "bench")
    run_folder.start(run_manifest(prepared.run), provenance(None), has_work=True)
    executor = RunExecutor(prepared, run_folder)
    before = getrusage(RUSAGE_SELF)
    with GracefulStop(config.cluster) as stop:
        executor.execute(stop)
    after = getrusage(RUSAGE_SELF)
    took = (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)
    num_units = prepared.plan.num_pending
    return 1000 * took[0] / num_units, 1000 * took[1] / num_units


def driver(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Seconds to the first committed call, when planning is done, and the driver's peak memory
    until then, in MB. Raises UsageError if the run ends earlier."""
    size = config.model_dump()["corpus"]["num_documents"]
    words = [*DRIVER_WORDS, f"corpus.num_documents={size}", f"plugins={config.plugins}"]
    started = [_started(words, folder / f"warehouse-{pair}") for pair in range(pairs)]
    first, memory = zip(*started, strict=True)
    return [
        figure_of("driver", "seconds to the first reply", first, ("at most", 120.0)),
        figure_of("driver", "MB of the driver", memory, ("at most", 2048.0)),
    ]


def _started(words: list[str], warehouse: Path) -> tuple[float, float]:
    began = time.perf_counter()
    try:
        with _driving([*words, f"warehouse={warehouse}"]) as process:
            _wait(process, lambda: any(warehouse.glob("tables/calls/*/*.parquet")))
            return time.perf_counter() - began, _most_mb(process.pid)
    finally:
        _remove(warehouse)


@contextmanager
def _driving(words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in its own process group, which is killed at the end."""
    command = [sys.executable, "-m", "gistmill", "run", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _remove(warehouse: Path) -> None:
    """Delete the warehouse, to which the killed run's workers may write for some seconds."""
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
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) / 1024
