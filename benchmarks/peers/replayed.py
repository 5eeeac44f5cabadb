"""The files between `bench peers` and a peer: the requests to replay, and the times measured.

A peer is the command `python -m benchmarks.peers.MODULE JOB RESULT`. It is a program that uses only
its library, and imports nothing of gistmill's.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Job:
    """Requests, in the order in which gistmill sent them."""

    arguments: dict[str, Any]  # of vLLM's engine, `model` among them
    chat_template: str | None  # a Jinja file instead of the model's own
    chat_template_kwargs: dict[str, Any]
    at_once: int  # the most requests in flight
    has_gpu: bool
    # Of each: `messages`, and `sampling`, keywords of SamplingParams and StructuredOutputsParams.
    requests: list[dict[str, Any]]

    def template_text(self) -> str | None:
        return Path(self.chat_template).read_text("utf-8") if self.chat_template else None


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """time.time() of the first request and of the last reply; the tokens of all requests."""

    first: float
    last: float
    num_requests: int
    prompt_tokens: int
    reply_tokens: int
    recorder_cpu: float = 0.0  # CPU seconds of what measures, of gistmill's phase alone

    @property
    def seconds(self) -> float:
        return self.last - self.first


def write(what: Job | Replayed, file: Path) -> None:
    file.write_text(json.dumps(asdict(what)), encoding="utf-8")


def read_replayed(file: Path) -> Replayed:
    return Replayed(**json.loads(file.read_text(encoding="utf-8")))


def command(replay: Callable[[Job], Replayed]) -> None:
    """A peer's command: replay the job of the first argument, write the result to the second."""
    job, result = map(Path, sys.argv[1:])
    write(replay(Job(**json.loads(job.read_text(encoding="utf-8")))), result)
