"""How a run ends when it cannot go on: one line, and an exit code that says what to do."""

import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.scripted_run import REPLY, begun, end_of, in_its_midst, last_line, words
from tests.support.command import succeed

pytestmark = [pytest.mark.slow, pytest.mark.sampled]


def slow_words(folder: Path, seconds: float = 30.0) -> list[str]:
    """A run of one document that waits for its answers."""
    return words(folder, {"prompt": "answer", "seconds": seconds, "reply": "so"}, REPLY, num=1)


def catches_sigterm(pid: int) -> bool:
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_ctrl_c_is_exit_4_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = slow_words(tmp_path, seconds=6.0)
    driver = in_its_midst(command, tmp_path)
    driver.send_signal(signal.SIGINT)
    assert last_line(end_of(driver), code=4).startswith("ended by Ctrl-C: ")
    succeed(*command)
    assert "complete" in succeed("status", command[-1])


def test_a_signal_is_one_line_from_the_first_moment_on(tmp_path: Path) -> None:
    """While it imports, plans, starts Ray; on a busy machine each of these takes longer. Its first
    moment is that in which our code, not Python's, begins."""
    command = slow_words(tmp_path)
    moments = ((signal.SIGTERM, seconds) for seconds in (0.0, 0.3, 0.6, 0.9, 1.2, 1.9, 2.4))
    for number, seconds in ((signal.SIGINT, 0.0), *moments):
        driver = begun(command)
        while not catches_sigterm(driver.pid):
            time.sleep(0.02)
        time.sleep(seconds)
        driver.send_signal(number)
        told = last_line(end_of(driver), code=4)
        assert told == "gistmill: interrupted; run the same command to resume"


@pytest.mark.parametrize("process", ["raylet", "gcs_server"])
def test_a_run_says_that_ray_was_killed(tmp_path: Path, process: str) -> None:
    driver = in_its_midst(slow_words(tmp_path), tmp_path)
    (of_ray,) = [child for child in psutil.Process(driver.pid).children(recursive=True)
                 if child.name() == process]  # fmt: skip
    of_ray.kill()
    told = last_line(end_of(driver), code=4)
    assert told == f"gistmill: Ray's {process} was killed; run the same command to resume"


IN_WORKERS = """\
import os, sys


class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "pipeline.worker.executor":
            {how}


if "default_worker.py" in " ".join(sys.orig_argv):
    sys.meta_path.insert(0, Broken())
"""
MISSING = "libgist.so: cannot open shared object file"


@pytest.mark.parametrize(
    "how",
    [f"raise OSError('{MISSING}')",
     f"sys.stderr.write('{MISSING}\\n'); sys.stderr.flush(); os._exit(7)"],
    ids=["a module of ours", "its process"],
)  # fmt: skip
def test_a_run_says_why_a_worker_does_not_start(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(IN_WORKERS.format(how=how))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = end_of(begun(words(tmp_path, REPLY, num=1)), timeout=400)
    told = last_line(done, code=1)
    assert told.startswith("gistmill: a worker ") and MISSING in told
    assert "\x1b" not in done.stderr and "\\x1b" not in done.stderr
    assert "creation task" not in done.stderr
