"""Run a way to answer requests as a command, and its rates."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.process_tree import Watched, watch
from benchmarks.peers.replayed import Replayed, read_replayed
from pipeline.core.errors import EngineError
from pipeline.engines.vllm.startup_errors import explained, vllm_errors_in_file


@dataclass(frozen=True)
class Measured:
    """The requests that a command replayed, and the process tree that it was."""

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
    """Run `python -m module words`; what it says is kept in `folder`.

    Raises EngineError where it fails or takes too long: the root cause, in one line.
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


def measured_peer(module: str, folder: Path, ours: Replayed, limit_seconds: float) -> Measured:
    """Replay the job in `folder`. Raises EngineError where the peer fails, or has not answered the
    prompts of `ours`."""
    result = folder / f"{module.rpartition('.')[2]}.json"
    watched = run_module(module, folder, (folder / "job.json", result), limit_seconds)
    replayed = read_replayed(result)
    for name in ("num_requests", "prompt_tokens"):
        own, theirs = getattr(ours, name), getattr(replayed, name)
        if own != theirs:
            raise EngineError(f"other requests: {name} is {theirs}, not {own} as in the run")
    return Measured(replayed, watched)
