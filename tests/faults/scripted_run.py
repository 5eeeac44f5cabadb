"""A scripted run over a few small documents, in a process of its own, which tests disturb."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import yaml

from tests.support.command import ROOT
from tests.support.texts.small_corpus import UNIFORM, document, question, write

REPLY = {"reply": "short"}


def words(folder: Path, *rules: dict[str, Any], num: int = 6, **script: Any) -> list[str]:
    """A scripted run over so many documents of one question each, on one worker."""
    numbers = range(1, num + 1)
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump({"replies": list(rules), **script}))
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only,bm25(top_k=1)", "engine=scripted", f"engine.script={path}",
        "engine.max_workers=1", "max_problem_rate=1.0", "cluster=local",
        f"warehouse={folder / 'warehouse'}",
    ]  # fmt: skip


def begun(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "gistmill", *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def in_its_midst(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    """A run that has gists and waits for answers."""
    driver = begun(command)
    gists = folder / "warehouse" / "tables" / "gists"
    while not list(gists.glob("*/*.parquet")) and driver.poll() is None:
        time.sleep(0.02)
    return driver


def end_of(driver: "subprocess.Popen[str]", timeout: float = 120) -> "CompletedProcess[str]":
    _, told = driver.communicate(timeout=timeout)
    return CompletedProcess(driver.args, driver.returncode, "", told)


def last_line(done: "CompletedProcess[str]", code: int) -> str:
    """The one line that a run ends with."""
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    return done.stderr.splitlines()[-1]


def complaint(done: "CompletedProcess[str]", code: int = 4) -> str:
    """The one line, without the command's name, in which a run says why it ends."""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("gistmill: ")]
    assert last_line(done, code) == line
    return line.removeprefix("gistmill: ")
