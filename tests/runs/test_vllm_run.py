"""`gistmill run engine=vllm` as a user types it, no setting for CPUs among the words, its engine
killed in the middle."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import ROOT, sql, sql_values
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.texts import small_corpus
from tests.support.texts.small_corpus import UNIFORM

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

NUM_DOCUMENTS = 8
METHODS = "methods=gist_only,bm25(top_k=1)"
REPLY_TOKENS = 80  # each reply has all of them
# Random weights babble: every problem is allowed here.
LENIENT = ("max_problem_rate=1.0", "max_fallback_rate=1.0")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a corpus of eight documents, three pages and a question each."""
    folder = tmp_path_factory.mktemp("vllm")
    make_tiny_model(folder / "tiny")
    numbers = range(NUM_DOCUMENTS)
    small_corpus.write(
        folder / "corpus",
        [small_corpus.document(number) for number in numbers],
        [small_corpus.question(number, of=number) for number in numbers],
    )
    return folder


def words(made: Path, warehouse: Path, *more: str) -> list[str]:
    return [
        "engine=vllm", f"engine.model={made / 'tiny'}", "corpus=tables",
        f"corpus.path={made / 'corpus'}", f"warehouse={warehouse}", "rater=none", *UNIFORM,
        METHODS, f"reply_tokens.gist={REPLY_TOKENS}", f"reply_tokens.answer={REPLY_TOKENS}",
        *LENIENT, *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def killed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of a run whose engine's process was killed after the first gists: its worker
    ends, and Ray starts another one with another engine."""
    warehouse = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "jobs", "run"]
    command += words(made, warehouse, "engine.sequences=1", "run=killed")
    defaults = {key: value for key, value in os.environ.items() if "VLLM_CPU" not in key}
    with subprocess.Popen(
        command, cwd=ROOT, env=defaults, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_for(lambda: any((warehouse / "tables").glob("gists/*/*.parquet")), run)
        wait_for(lambda: bool(engines_of(run.pid)), run)  # a process may not be listed for a moment
        (first,) = engines_of(run.pid)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: len(workers(warehouse)) > 1, run)
        answered = list((warehouse / "tables").glob("answers/*/*.parquet"))
        assert len(answered) < 2 * NUM_DOCUMENTS, "a second worker that reads"
        out, err = run.communicate(timeout=500)
    assert run.returncode == 0, f"{out}\n{err}"
    return warehouse


def test_nothing_is_lost_with_a_killed_engine(killed: Path) -> None:
    for table, count in (("gists", 3 * NUM_DOCUMENTS), ("answers", 2 * NUM_DOCUMENTS)):
        assert sql_values(killed, f"select count(*) from {table}", "run=killed") == [(count,)]


def test_a_run_keeps_what_each_call_cost(killed: Path) -> None:
    calls = sql(killed, "select * from calls", "run=killed")
    assert {call["engine"] for call in calls} == {"vllm:tiny"}
    assert {call["stage"] for call in calls} == {"gist", "answer"}
    # a gist a page, an answer a question by either method
    assert len(calls) == NUM_DOCUMENTS * (3 + 2), "none twice"
    assert {call["finish_reason"] for call in calls} == {"length"}, "random weights never stop"
    assert {call["problem"] for call in calls} == {"truncated"}, "none is laid to the death"
    for call in calls:
        assert call["prompt_tokens"] > 40
        assert call["reply_tokens"] == REPLY_TOKENS
        assert call["seconds"] > 0
        assert 0 <= call["cached_tokens"] < call["prompt_tokens"]


def wait_for(happens: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 500
    while not happens():
        assert run.poll() is None, f"{run.communicate()}"
        assert time.monotonic() < until
        time.sleep(0.05)


def workers(warehouse: Path) -> set[str]:
    """The workers that wrote heartbeats; a killed worker's file stays."""
    return {file.name for file in (warehouse / "runs" / "killed" / "alive").glob("*.json")}


def engines_of(driver: int) -> list[int]:
    """The vLLM engine processes below a driver's process."""
    return [pid for pid in _below(driver) if "EngineCore" in _read(pid, "cmdline")]


def _below(process: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        parent = re.search(r"^PPid:\s+(\d+)", _read(pid, "status"), re.MULTILINE)
        if parent and int(parent[1]) == process:
            yield pid
            yield from _below(pid)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:  # it has just ended
        return ""
