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
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN_SAMPLES = 0.25
_SECONDS_BETWEEN_LOOKS = 0.05  # for killed processes


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


@dataclass(frozen=True)
class _Process:
    pid: int
    started: int  # ticks since the machine's start: with `pid`, no other process is equal
    parent: int = field(compare=False)
    ticks: int = field(compare=False)  # of CPU time
    has_ended: bool = field(compare=False)  # and its parent has not asked for its exit code


class ProcessTree:
    """A process and all below it, those that have ended included."""

    def __init__(self, root: int) -> None:
        self._found = {one: one.ticks for one in _processes() if one.pid == root}

    def cpu_seconds(self) -> float:
        """CPU seconds of all processes so far; of ended ones, up to the last call before."""
        self._alive()
        return sum(self._found.values()) / _TICKS

    def kill(self) -> None:
        """Kill those that still run, and wait until they are gone, with the GPU memory they had."""
        while running := [one for one in self._alive() if not one.has_ended]:
            for one in running:
                with suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _alive(self) -> set[_Process]:
        everyone = _processes()
        tree = more = {one for one in everyone if one in self._found}
        while more:
            pids = {one.pid for one in more}
            more = {one for one in everyone if one.parent in pids} - tree
            tree |= more
        self._found |= {one: one.ticks for one in tree}
        return tree


def watch(command: Sequence[str], log: Path, limit_seconds: float) -> Watched:
    """Run a command to its end; what it leaves running is killed. Its standard error is in `log`,
    its standard output beside it in a file that ends in .out.

    Raises subprocess.CalledProcessError if it fails, TimeoutExpired after `limit_seconds`.
    """
    begun, samples = time.time(), []
    with log.open("wb") as errors, log.with_suffix(".out").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=errors)
    tree = ProcessTree(process.pid)
    try:
        while process.poll() is None:
            samples.append((time.time(), tree.cpu_seconds()))
            if time.time() - begun > limit_seconds:
                raise subprocess.TimeoutExpired(command, limit_seconds)
            time.sleep(_SECONDS_BETWEEN_SAMPLES)
    finally:
        tree.kill()
        process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Watched(begun, samples)


def _processes() -> list[_Process]:
    """Every process on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            # The name of a process is in brackets and may have spaces: what follows has none.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parent, user, system, started = (int(fields[n]) for n in (1, 11, 12, 19))
            ticks, has_ended = user + system, fields[0] == "Z"
            found.append(_Process(int(folder.name), started, parent, ticks, has_ended))
    return found
