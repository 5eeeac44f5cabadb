"""`gistmill run engine=vllm` as a user types it, no setting for CPUs among the words, its engine
killed in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.command import ROOT, sql, sql_values
from tests.support.engines.tiny_model import make_tiny_model
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

NUM_DOCUMENTS = 8
REPLY_TOKENS = 80  # each reply has all of them


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of a run whose engine's process was killed after the first gists: its worker
    ends, and Ray starts another one with another engine. Of eight documents, three pages and a
    question each."""
    folder, numbers = tmp_path_factory.mktemp("vllm"), range(NUM_DOCUMENTS)
    make_tiny_model(folder / "tiny")
    write(folder / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    warehouse = folder / "warehouse"
    command = [
        sys.executable, "-m", "gistmill", "run", "run=killed", f"warehouse={warehouse}",
        "engine=vllm", f"engine.model={folder / 'tiny'}", "engine.sequences=1", "rater=none",
        "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        "methods=gist_only,bm25(top_k=1)", f"reply_tokens.gist={REPLY_TOKENS}",
        f"reply_tokens.answer={REPLY_TOKENS}",
        "max_problem_rate=1.0", "max_fallback_rate=1.0",  # random weights babble
    ]  # fmt: skip
    defaults = {key: value for key, value in os.environ.items() if "VLLM_CPU" not in key}
    with subprocess.Popen(
        command, cwd=ROOT, env=defaults, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_for(lambda: any((warehouse / "tables").glob("gists/*/*.parquet")), run)
        wait_for(lambda: bool(engines_of(run.pid)), run)  # a process may not be listed for a moment
        (first,) = engines_of(run.pid)
        os.kill(first, signal.SIGKILL)
        # A killed worker's file of heartbeats stays.
        wait_for(lambda: len([*warehouse.glob("runs/killed/alive/*.json")]) > 1, run)
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


def engines_of(driver: int) -> list[int]:
    """The vLLM engine processes below a driver's process."""
    found = []
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if "EngineCore" in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


def wait_for(happens: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 500
    while not happens():
        assert run.poll() is None, f"{run.communicate()}"
        assert time.monotonic() < until
        time.sleep(0.05)
