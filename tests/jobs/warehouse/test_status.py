"""`gistmill status`: what is done and at work; with --watch until the run is not at work."""

import json
import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jobs.output.terminal import fitted_to_terminal
from jobs.warehouse.status import status_parts
from pipeline.core.errors import ClusterError
from pipeline.files.lease import RUN, lease
from pipeline.files.storage import as_path
from tests.support.command import gistmill, refused, succeed
from tests.support.runs.finished_run import FinishedRun

STAGES = ("documents", "questions", "paginate", "gist", "embed", "queries", "search", "look_up",
          "answer", "rate", "score")  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("status"))


def step(stage: str, number: int, **counts: int) -> dict[str, Any]:
    names = ("inputs", "ok", "problem", "skipped", "not_done", "calls", "prompt_tokens",
             "cached_tokens", "reply_tokens")  # fmt: skip
    return {"stage": stage, "method": f"m{number}", "repeat": 0, "step_id": f"{stage}-{number}",
            **dict.fromkeys(names, 0), "seconds": 0.0, **counts}  # fmt: skip


def worker(number: int, num_documents: int = 1) -> dict[str, Any]:
    book = {"document_id": "book-0", "table": "pages", "done": 37, "about": 300}
    return {"worker": f"node-{number}-4711", "inside": [book],
            "documents": {f"book-{n}": 312.4 - n for n in range(num_documents)}}  # fmt: skip


def night(num_workers: int = 64, num_problems: int = 30) -> dict[str, Any]:
    """A large run at work: what `status --json` prints of it."""
    steps = [
        step(stage, number, inputs=200_000, ok=190_000, problem=1_000 * bool(num_problems),
             not_done=9_000, calls=190_000, prompt_tokens=2_000_000_000, reply_tokens=30_000_000)
        for stage in STAGES for number in range(26)
    ]  # fmt: skip
    progress = {"phase": "reading", "share": 0.37, "seconds_left": 13_200.0,
                "ends_at": "2026-11-22T05:12", "inside": None, "units": 1, "planned_units": 9,
                "problems": 0, "tokens_per_second": 81_000.0, "cached_share": 0.87,
                "rows_per_second": 12.0}  # fmt: skip
    return {
        "run": "night", "complete": False, "steps": steps, "job": None, "progress": progress,
        "problems": [f"truncated in stage{n}: {n + 1} rows, 1 question of 1 document of the "
                     "corpus, such as: cut; raise it" for n in range(num_problems)],
        "findings": [],
        "driver": "head-99", "alive": [worker(n, 1 + n % 40) for n in range(num_workers)],
        "silent": {"node-70-1": 600.0}, "left_out": [], "ended": None,
        "calls": {"bytes": 2_000_000, "prompt_bytes": 1_500_000},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("width", "num_workers", "num_problems"), [(80, 0, 0), (200, 2, 1), (80, 64, 30)]
)
def test_what_matters_is_shown(width: int, num_workers: int, num_problems: int) -> None:
    text = fitted_to_terminal(status_parts(night(num_workers, num_problems)), width)
    lines = text.splitlines()
    assert len(lines) <= 70 and max(map(len, lines)) <= width
    assert lines[0].startswith("run night: 2574000 inputs not done")
    assert "executed on head (process 99)" in " ".join(lines)
    assert "reading 37%: ends 05:12, in 3 h 40 min" in text
    assert all(f"\n{stage} " in text for stage in STAGES)
    assert "not done" in text and "skipped" not in text
    assert ("pages 37 of about 300" in " ".join(lines)) == (num_workers > 0)
    assert ("truncated in stage0: 1 rows" in text) == (num_problems > 0)
    assert num_workers < 64 or "and 55 more lines like these; --json has all" in text


@pytest.mark.slow
def test_steps_are_rows_of_their_own(made: FinishedRun) -> None:
    stages = succeed("status", f"warehouse={made.warehouse}")
    steps = succeed("status", "--steps", f"warehouse={made.warehouse}")
    found = json.loads(succeed("status", "--json", f"warehouse={made.warehouse}"))["steps"]
    assert stages.startswith("run night: complete\n")
    assert sum(line.startswith("| ") for line in stages.splitlines()) == 1 + len(
        {step["stage"] for step in found}
    )
    assert all(step["step_id"] in steps and step["step_id"] not in stages for step in found)
    (gists,) = [line.split() for line in stages.splitlines() if line.startswith("| gist ")]
    assert gists[3:8:2] == ["1", "2", "2"], "a step of two documents, both ok"


@pytest.mark.slow
def test_why_ray_did_not_start_stays_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the run is complete, in `status` and above the report."""

    def refuse(address: str | None) -> None:
        raise ClusterError("Ray did not start on this machine in 3 attempts (no port)")

    words = ["corpus=synthetic", "corpus.num_documents=1", "corpus.words=300", "memory=uniform",
             "methods=gist_only", "rater=none", "run=night", f"warehouse={tmp_path}"]  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.cluster.join", refuse)
        assert gistmill("run", *words, "cluster=local").returncode == 4
    why = "the last launch ended early: Ray did not start on this machine in 3 attempts (no port)"
    assert why in succeed("status", words[-1])
    assert "It ended early: Ray did not start" in succeed("report", words[-1])
    succeed("run", *words)
    assert "ended early" not in succeed("status", words[-1]) + succeed("report", words[-1])


# Watching.


@pytest.mark.slow
def test_a_run_that_is_over_is_shown_once(made: FinishedRun) -> None:
    once = succeed("status", f"warehouse={made.warehouse}")
    assert succeed("status", "--watch", f"warehouse={made.warehouse}") == once
    for verb in (["--watch", "--json"], ["--every", "0.5", "--json"]):
        assert json.loads(succeed("status", *verb, f"warehouse={made.warehouse}"))["complete"]


class Sleeps:
    """Instead of sleeping: releases the lease of the run the second time. Other threads wait, such
    as the one that watches a Ray which a test before has joined."""

    def __init__(self, folder: Path) -> None:
        self.thread = threading.get_ident()
        self.taken: list[float] = []
        self.held = ExitStack()
        assert self.held.enter_context(lease(as_path(folder), RUN))

    def __call__(self, seconds: float) -> None:
        if threading.get_ident() != self.thread:
            threading.Event().wait(seconds)
            return
        self.taken.append(seconds)
        if len(self.taken) == 2:
            self.held.close()


@pytest.fixture
def sleeps(made: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> Sleeps:
    found = Sleeps(made.warehouse / "runs" / "night")
    monkeypatch.setattr("jobs.warehouse.status.time.sleep", found)
    return found


@pytest.mark.slow
def test_a_log_gets_a_block_each_time_until_the_run_ends(made: FinishedRun, sleeps: Sleeps) -> None:
    shown = succeed("status", "--watch", "--every", "7", f"warehouse={made.warehouse}")
    assert sleeps.taken == [7.0, 7.0]
    blocks = re.split(r"\n\n(?=run night)", shown)
    assert len(blocks) == 3
    assert ["executed on" in block for block in blocks] == [True, True, False]


def test_ctrl_c_ends_the_watching_and_not_the_run(
    made: FinishedRun, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobs.warehouse.status.time.sleep", interrupted)
    done = gistmill("status", "--watch", f"warehouse={made.warehouse}")
    assert (done.returncode, done.stderr) == (0, "")
    sleeps.held.close()


@pytest.mark.parametrize("every", ["0", "-1", "nan", "soon", "1e9"])
def test_an_interval_that_is_none_is_refused(made: FinishedRun, every: str) -> None:
    assert "--every" in refused("status", "--every", every, f"warehouse={made.warehouse}")
