"""Start a command, and sample the CPU seconds of its process and all below it while it works.

Read from Linux's /proc. What a process takes between the last sample and its end is not seen.
"""

import os
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import EngineError

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN_SAMPLES = 0.25


@dataclass(frozen=True)
class Watched:
    """The moment when a command began, and samples of (time.time(), CPU seconds of its tree)."""

    begun: float
    samples: Sequence[tuple[float, float]]

    def cpu_seconds(self, first: float, last: float) -> float:
        """CPU seconds of the tree between two clocks, linear between samples."""
        return self._at(last) - self._at(first)

    def _at(self, clock: float) -> float:
        position = bisect_left(self.samples, (clock, 0.0))
        if position in (0, len(self.samples)):
            return self.samples[min(position, len(self.samples) - 1)][1]
        (before, low), (after, high) = self.samples[position - 1 : position + 1]
        return low + (high - low) * (clock - before) / (after - before)


class ProcessTree:
    """A process and all below it, those that have ended included."""

    def __init__(self, root: int) -> None:
        self._ticks = {root: 0}  # of CPU time, as last seen

    def cpu_seconds(self) -> float:
        """CPU seconds of all processes so far; of ended ones, up to the last call before."""
        parents, ticks = _processes()
        tree = {*self._ticks}
        while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
            tree |= more
        self._ticks |= {pid: ticks[pid] for pid in tree & ticks.keys()}
        return sum(self._ticks.values()) / _TICKS

    def kill(self) -> None:
        for pid in self._ticks:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def watch(command: Sequence[str], log: Path, limit_seconds: float) -> Watched:
    """Run a command to its end, its output in `log`; what it leaves running is killed.

    Raises EngineError if it fails or takes longer than `limit_seconds`.
    """
    begun, samples = time.time(), []
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    tree = ProcessTree(process.pid)
    try:
        while process.poll() is None:
            samples.append((time.time(), tree.cpu_seconds()))
            if time.time() - begun > limit_seconds:
                raise EngineError(f"has not ended in {limit_seconds:.0f} s")
            time.sleep(_SECONDS_BETWEEN_SAMPLES)
    finally:
        tree.kill()
        process.wait()
    if process.returncode:
        raise EngineError(f"exit code {process.returncode}")
    return Watched(begun, samples)


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """The parent and the ticks of CPU time of every process on this machine."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            # The name of a process is in brackets and may have spaces: what follows has none.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = int(fields[11]) + int(fields[12])
    return parents, ticks
