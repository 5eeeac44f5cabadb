"""Run a peer as a command and compute its rates; the CPU seconds of its process tree are sampled
while it works.

Read from Linux's /proc. CPU time between the last sample and a process's end is not seen.
"""

import os
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.replayed import Replayed, read_replayed
from pipeline.core.errors import EngineError
from pipeline.engines.vllm.vllm_engine import explained, vllm_errors_in_file

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN_SAMPLES = 0.25
_SECONDS_BETWEEN_LOOKS = 0.05  # for killed processes


@dataclass(frozen=True)
class Watched:
    """The time when a command began, and samples of (time.time(), CPU seconds of its tree)."""

    begun: float
    samples: Sequence[tuple[float, float]]

    def cpu_seconds(self, first: float, last: float) -> float:
        """CPU seconds of the tree between two clocks, interpolated linearly."""
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
    has_ended: bool = field(compare=False)  # a zombie: its parent has not asked for its exit code


class ProcessTree:
    """A process and its descendants, including those that have ended."""

    def __init__(self, root: int) -> None:
        self._found = {one: one.ticks for one in _processes() if one.pid == root}

    def cpu_seconds(self) -> float:
        """CPU seconds of all processes so far; for ended ones, up to the previous call."""
        self._alive()
        return sum(self._found.values()) / _TICKS

    def kill(self) -> None:
        """Kill the running processes, and wait until they and their GPU memory are gone."""
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
    """Run a command to its end, then kill processes that it leaves. Its standard error goes to
    `log`, its standard output to a file beside it that ends in .out.

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
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            # The process name is in parentheses and may have spaces; later fields have none.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parent, user, system, started = (int(fields[n]) for n in (1, 11, 12, 19))
            ticks, has_ended = user + system, fields[0] == "Z"
            found.append(_Process(int(folder.name), started, parent, ticks, has_ended))
    return found


@dataclass(frozen=True)
class PeerRun:
    """The requests that a command replayed, and its process tree."""

    replayed: Replayed
    watched: Watched

    @property
    def per_second(self) -> float:
        """Requests per wall second, from the first request to the last reply."""
        return self.replayed.num_requests / self.replayed.seconds

    @property
    def per_cpu_second(self) -> float:
        """Requests per CPU second of the process tree in that time, without the recorder's."""
        cpu = self.watched.cpu_seconds(self.replayed.first, self.replayed.last)
        return self.replayed.num_requests / (cpu - self.replayed.recorder_cpu)

    @property
    def to_first(self) -> float:
        """Seconds from the command to its first request."""
        return self.replayed.first - self.watched.begun


def run_module(module: str, folder: Path, words: Sequence[Path], limit_seconds: float) -> Watched:
    """Run `python -m module words`; its output is kept in `folder`.

    Raises EngineError with the root cause, in one line, where it fails or takes too long.
    """
    log = folder / f"{module.rpartition('.')[2]}.log"
    with vllm_errors_in_file() as errors:
        try:
            return watch([sys.executable, "-m", module, *map(str, words)], log, limit_seconds)
        except subprocess.TimeoutExpired:
            raise EngineError(f"has not ended in {limit_seconds:.0f} s") from None
        except subprocess.CalledProcessError:
            said = log.read_text(encoding="utf-8", errors="replace")
            with errors.open("a", encoding="utf-8") as found:
                found.write(said)
            last = RuntimeError(said.strip().rpartition("\n")[2])
            raise EngineError(explained(last, errors)[0]) from None


def measured_peer(module: str, folder: Path, ours: Replayed, limit_seconds: float) -> PeerRun:
    """Replay the job in `folder`. Raises EngineError where the peer fails, or has not answered
    the prompts of `ours`."""
    result = folder / f"{module.rpartition('.')[2]}.json"
    watched = run_module(module, folder, (folder / "job.json", result), limit_seconds)
    replayed = read_replayed(result)
    for name in ("num_requests", "prompt_tokens"):
        own, theirs = getattr(ours, name), getattr(replayed, name)
        if own != theirs:
            raise EngineError(f"other requests: {name} is {theirs}, not {own} as in the run")
    return PeerRun(replayed, watched)
