"""How following a job ends: 0 only where it succeeded. A small server plays the head, as a real one
cannot be made to forget."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from pipeline.cluster import ray_jobs
from tests.support.clusters.loopback import serving
from tests.support.command import gistmill

Answers = list[dict[str, Any] | None]
"""What the head knows of the job, one look after the other, the last one for ever; null: it
hangs up."""
Follow = Callable[..., "CompletedProcess[str]"]


JOB = {"type": "SUBMISSION", "submission_id": "gistmill-r-1", "entrypoint": "python"}


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follow]:
    """Follow a run that is at work already."""
    answers: Answers = []

    def answered(path: str) -> tuple[int, bytes] | None:
        if path == "/api/version":
            return 200, b'{"ray_version": "2.60.0"}'
        if path != "/api/jobs/":
            return 503, b""
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        return None if answer is None else (200, json.dumps([answer] if answer else []).encode())

    monkeypatch.setattr(ray_jobs, "_SECONDS_LOST", 0.5)
    monkeypatch.setattr(ray_jobs, "_SECONDS_BETWEEN_LOOKS", 0.1)

    def followed(*told: dict[str, Any] | None) -> "CompletedProcess[str]":
        job = {**JOB, "metadata": {"run": "r", "warehouse": str(tmp_path)}}
        answers[:] = [{**job, **each} if each else each for each in ({"status": "RUNNING"}, *told)]
        return gistmill("submit", "run=r", f"warehouse={tmp_path}", f"cluster.address={head}")

    with serving(answered) as head:
        yield followed


@pytest.mark.parametrize(
    ("jobs", "code", "says"),
    [
        ([{"status": "SUCCEEDED", "driver_exit_code": 0}], 0, "running there already"),
        ([{"status": "STOPPED"}], 4, "job gistmill-r-1 was stopped; run the same command"),
        *(([{"status": "FAILED", "driver_exit_code": driver}], code, f"failed: exit code {driver}")
          for driver, code in ((1, 1), (2, 2), (3, 3), (4, 4), (-9, 1), (0, 1))),
        ([{"status": "FAILED", "message": "no such pip package\nTraceback"}], 1,
         "failed: no such pip package"),
        ([{"status": "RUNNING"}, {}], 1, "no longer has job gistmill-r-1"),
        ([{"status": "RUNNING"}, None], 1, "job gistmill-r-1 may still run there"),
        ([None, None, {"status": "SUCCEEDED", "driver_exit_code": 0}], 0, "running there already"),
    ],
)  # fmt: skip
def test_how_it_ends(follow: Follow, jobs: Answers, code: int, says: str) -> None:
    done = follow(*jobs)
    assert done.returncode == code
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gistmill: ") and says in last
    assert "Traceback" not in done.stderr
