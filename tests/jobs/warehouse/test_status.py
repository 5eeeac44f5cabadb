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
    rows = json.loads(succeed("status", "--json", f"warehouse={made.warehouse}"))["steps"]
    assert stages.startswith("run night: complete\n")
    num_stages = len({row["stage"] for row in rows})
    assert sum(line.startswith("| ") for line in stages.splitlines()) == 1 + num_stages
    assert all(row["step_id"] in steps and row["step_id"] not in stages for row in rows)
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


@pytest.mark.slow
def test_a_run_that_is_over_is_shown_once(made: FinishedRun) -> None:
    once = succeed("status", f"warehouse={made.warehouse}")
    assert succeed("status", "--watch", f"warehouse={made.warehouse}") == once
    for verb in (["--watch", "--json"], ["every=0.5", "--json"]):
        assert json.loads(succeed("status", *verb, f"warehouse={made.warehouse}"))["complete"]


@pytest.mark.slow
def test_a_log_gets_a_block_each_time_until_the_run_ends(
    made: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or until Ctrl-C, which does not end the run."""
    thread, pauses, leases = threading.get_ident(), list[float](), ExitStack()

    def pause(seconds: float) -> None:
        if threading.get_ident() != thread:  # such as one that watches a Ray joined before
            threading.Event().wait(seconds)
            return
        pauses.append(seconds)
        if len(pauses) == 1:
            raise KeyboardInterrupt
        if len(pauses) == 3:
            leases.close()

    monkeypatch.setattr("jobs.warehouse.status.time.sleep", pause)
    words = ("status", "--watch", "every=7", f"warehouse={made.warehouse}")
    with leases:
        assert leases.enter_context(lease(as_path(made.warehouse / "runs" / "night"), RUN))
        assert succeed(*words).count("executed on") == 1
        blocks = re.split(r"\n\n(?=run night)", succeed(*words))
    assert pauses == [7.0, 7.0, 7.0]
    assert ["executed on" in block for block in blocks] == [True, True, False]


def test_an_interval_that_is_none_is_refused(made: FinishedRun) -> None:
    for every in ("0", "nan", "soon", "1e9"):
        assert "every=" in refused("status", f"every={every}", f"warehouse={made.warehouse}")
