"""`gistmill status`: what is done and at work; with --watch until the run is not at work."""

import json
import re
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline.core.errors import ClusterError
from pipeline.files.lease import RUN, lease
from pipeline.files.storage import as_path
from tests.support.command import gistmill, refused, succeed
from tests.support.runs.finished_run import FinishedRun


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("status"))


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
    for verb in (["--watch", "--json"], ["every=0.5", "--json"]):
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
    shown = succeed("status", "--watch", "every=7", f"warehouse={made.warehouse}")
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
    assert "every=" in refused("status", f"every={every}", f"warehouse={made.warehouse}")
