"""How a run ends when it cannot go on: one line, and an exit code that says what to do."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.support.command import ROOT, gistmill, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = [pytest.mark.slow, pytest.mark.sampled]


def words(folder: Path, *rules: dict[str, object]) -> list[str]:
    """A scripted run over one small document."""
    write(folder / "corpus", [document(1)], [question(1, of=1)])
    (folder / "script.yaml").write_text(yaml.safe_dump({"replies": list(rules)}))
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only", "engine=scripted", f"engine.script={folder / 'script.yaml'}",
        f"warehouse={folder / 'warehouse'}", "cluster=local",
    ]  # fmt: skip


def test_what_kills_every_engine_is_problem_rows_and_exit_3(tmp_path: Path) -> None:
    """tests/faults/test_faults.py has the rows."""
    done = gistmill(*words(tmp_path, {"prompt": "answer", "die": True}, {"reply": "short"}))
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("answer-")]
    assert "gist_only: 1 of 1 inputs have a problem (max_problem_rate=0.05); " in line
    assert "; most often unit_failed (1); most rows with a problem: d1 (1); all of " in line
    assert "Traceback" not in done.stderr


def test_ctrl_c_is_exit_4_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = words(tmp_path, {"prompt": "answer", "seconds": 6.0, "reply": "so"}, {"reply": "s"})
    driver = subprocess.Popen(
        [sys.executable, "-m", "jobs", *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    gists = tmp_path / "warehouse" / "tables" / "gists"
    while not list(gists.glob("*/*.parquet")) and driver.poll() is None:
        time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    _, told = driver.communicate(timeout=60)
    assert driver.returncode == 4, told
    assert told.splitlines()[-1].startswith("gistmill: interrupted")
    succeed(*command)
    assert "complete" in succeed("status", command[-2])


def test_a_worker_that_no_machine_could_hold_is_refused(tmp_path: Path) -> None:
    done = gistmill(*words(tmp_path, {"reply": "short"}), "engine.cpus_per_worker=4096")
    assert done.returncode == 2
    assert "engine.cpus_per_worker=4096: 1 workers of that size need" in done.stderr
