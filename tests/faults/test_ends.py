"""How a run ends when it cannot go on: one line, and an exit code that says what to do."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from tests.support.command import ROOT, succeed
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


def begun(command: list[str], module: str = "jobs") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", module, *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def catches_sigterm(pid: int) -> bool:
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def in_its_midst(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    """A run that has gists and waits for the answer."""
    driver = begun(command)
    gists = folder / "warehouse" / "tables" / "gists"
    while not list(gists.glob("*/*.parquet")) and driver.poll() is None:
        time.sleep(0.02)
    return driver


def test_ctrl_c_is_exit_4_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = words(tmp_path, {"prompt": "answer", "seconds": 6.0, "reply": "so"}, {"reply": "s"})
    driver = in_its_midst(command, tmp_path)
    driver.send_signal(signal.SIGINT)
    _, told = driver.communicate(timeout=60)
    assert driver.returncode == 4, told
    assert told.splitlines()[-1].startswith("ended by Ctrl-C: ")
    succeed(*command)
    assert "complete" in succeed("status", command[-2])


@pytest.mark.parametrize("module", ["jobs", "gistmill"])
def test_sigterm_is_one_line_from_the_first_moment_on(tmp_path: Path, module: str) -> None:
    """While it imports, plans, starts Ray; on a busy machine each of these takes longer. Its first
    moment is that in which our code, not Python's, begins."""
    command = words(tmp_path, {"prompt": "answer", "seconds": 30.0, "reply": "so"}, {"reply": "s"})
    for seconds in (0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.9, 2.4):
        driver = begun(command, module)
        while not catches_sigterm(driver.pid):
            time.sleep(0.02)
        time.sleep(seconds)
        driver.terminate()
        _, told = driver.communicate(timeout=60)
        assert driver.returncode == 4, told
        last = told.splitlines()[-1]
        assert last == "gistmill: interrupted; run the same command to resume"
        assert "Traceback" not in told


@pytest.mark.parametrize("process", ["raylet", "gcs_server"])
def test_a_run_says_that_ray_was_killed(tmp_path: Path, process: str) -> None:
    command = words(tmp_path, {"prompt": "answer", "seconds": 30.0, "reply": "so"}, {"reply": "s"})
    driver = in_its_midst(command, tmp_path)
    (of_ray,) = [child for child in psutil.Process(driver.pid).children(recursive=True)
                 if child.name() == process]  # fmt: skip
    of_ray.kill()
    _, told = driver.communicate(timeout=120)
    assert driver.returncode == 4, told
    said = f"gistmill: Ray's {process} was killed; run the same command to resume"
    assert told.splitlines()[-1] == said
    assert "Traceback" not in told


IN_WORKERS = """\
import os, sys


class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            {how}


if "default_worker.py" in " ".join(sys.orig_argv):
    sys.meta_path.insert(0, Broken())
"""
MISSING = "libgist.so: cannot open shared object file"
WHY = {
    "a module of ours": ("pipeline.worker.executor", f"raise OSError('{MISSING}')"),
    "what the worker is made of": ("pipeline.engines.extractive", f"raise OSError('{MISSING}')"),
    "its process": (
        "pipeline.worker.executor",
        f"sys.stderr.write('{MISSING}\\n'); sys.stderr.flush(); os._exit(7)",
    ),
}


@pytest.mark.parametrize("what", WHY)
def test_a_run_says_why_a_worker_does_not_start(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, how = WHY[what]
    (tmp_path / "sitecustomize.py").write_text(IN_WORKERS.format(module=module, how=how))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    driver = begun(words(tmp_path, {"reply": "short"}))
    _, told = driver.communicate(timeout=400)
    assert driver.returncode == 1, told
    last = told.splitlines()[-1]
    assert last.startswith("gistmill: a worker ") and MISSING in last
    assert "\x1b" not in told and "\\x1b" not in told
    assert "Traceback" not in told and "creation task" not in told
