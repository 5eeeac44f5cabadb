"""Whole runs with engine=batch: waves by the step graph, kills, and what a batch leaves open."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, gistmill, sql, succeeded
from tests.support.engines.loopback_batches import BatchServer
from tests.support.engines.loopback_server import Answer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

# Three documents of three pages: nine gists; a question each, two methods that each ask once.
NUM_GISTS, NUM_CLOSED, NUM_FROM_GISTS = 9, 3, 3
NUM_CALLS = NUM_GISTS + NUM_CLOSED + NUM_FROM_GISTS


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def words(folder: Path, server: BatchServer, *more: str) -> list[str]:
    numbers = (1, 2, 3)
    asked = [question(number, of=number) for number in numbers]
    write(folder / "corpus", [document(number) for number in numbers], asked)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only,closed_book", f"warehouse={folder / 'warehouse'}", "cluster=inline",
        "engine=batch", f"engine.base_url={server.url}", "engine.model=m",
        "engine.wave_seconds=1.0", "engine.look_seconds=0.05", *more,
    ]  # fmt: skip


def calls(folder: Path) -> list[dict[str, Any]]:
    return sql(folder / "warehouse", "select * from calls order by stage, document_id, page_index")


def last_words(done: "subprocess.CompletedProcess[str]") -> str:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("gistmill: ")]
    return line.removeprefix("gistmill: ")


def killed(command: list[str], server: BatchServer, num_batches: int) -> None:
    """Start the run, and kill it once the server has so many batches and is asked about the last
    one."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "jobs", *command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while driver.poll() is None:
        batches = [*server.batches.values()]
        if len(batches) == num_batches and batches[-1]["looks"] > 2:
            os.kill(driver.pid, signal.SIGKILL)
        time.sleep(0.02)
    assert driver.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_a_wave_has_all_that_can_be_asked_without_a_reply(tmp_path: Path) -> None:
    with BatchServer(answer=lambda body: Answer(text="said in four words"), looks=2) as server:
        succeeded(gistmill(*words(tmp_path, server)))
    assert [len(wave) for wave in server.waves()] == [NUM_GISTS + NUM_CLOSED, NUM_FROM_GISTS]
    rows = calls(tmp_path)
    assert len(rows) == NUM_CALLS
    for row in rows:
        assert (row["engine"], row["reply"], row["finish_reason"]) == (
            "batch:m", "said in four words", "stop",
        )  # fmt: skip
        assert (row["reply_tokens"], row["cached_tokens"], row["problem"]) == (4, 1, None)
    assert not [*(tmp_path / "warehouse").glob("runs/*/requested/*")], "all is committed"


@pytest.mark.slow
def test_a_run_killed_while_it_waits_takes_its_batch_up_again(tmp_path: Path) -> None:
    with BatchServer(is_held=True) as server:
        command = words(tmp_path, server)
        killed(command, server, num_batches=1)
        server.is_held = False
        succeeded(gistmill(*command))
    assert [len(wave) for wave in server.waves()] == [NUM_GISTS + NUM_CLOSED, NUM_FROM_GISTS]
    assert len(calls(tmp_path)) == NUM_CALLS


@pytest.mark.slow
def test_one_killed_in_a_later_wave_repeats_nothing_of_the_first(tmp_path: Path) -> None:
    """The gists and answers of the first wave are committed, or their batch is still noted."""
    with BatchServer() as server:
        server.answer = lambda body: _held_after(server, NUM_GISTS + NUM_CLOSED)
        command = words(tmp_path, server)
        killed(command, server, num_batches=2)
        server.is_held = False
        server.answer = lambda body: Answer()
        succeeded(gistmill(*command))
    assert [len(wave) for wave in server.waves()] == [NUM_GISTS + NUM_CLOSED, NUM_FROM_GISTS]


def _held_after(server: BatchServer, num_lines: int) -> Answer:
    """A reply; once the last line of the first batch has one, no batch ends any more."""
    server.asked_lines += 1
    server.is_held = server.asked_lines >= num_lines
    return Answer()


@pytest.mark.slow
def test_a_batch_that_runs_for_longer_than_every_limit_is_waited_for(tmp_path: Path) -> None:
    """Neither the deadline of a request nor the limit of a stalled run, 15 seconds, ends it."""
    more = ("engine.deadline_seconds=0.5", "cluster.stall_minutes=0.25")
    with BatchServer(looks=450) as server:
        succeeded(gistmill(*words(tmp_path, server, *more)))
    assert {row["problem"] for row in calls(tmp_path)} == {None}
    assert max(row["seconds"] for row in calls(tmp_path)) > 15


@pytest.mark.slow
def test_single_lines_that_fail_are_rows_with_a_problem(tmp_path: Path) -> None:
    """One by its own fault, one that the server's file has an error for, each time."""

    def failing(body: dict[str, Any]) -> Answer:
        text = body["messages"][0]["content"]
        if "number 1" in text:
            return Answer(status=400, body=json.dumps({"error": {"message": "no"}}))
        return Answer(hang_up="number 2" in text)

    more = ("methods=closed_book", "engine.retries=1", "max_problem_rate=1.0")
    with BatchServer(answer=failing) as server:
        command = words(tmp_path, server, *more)
        succeeded(gistmill(*command))
        problems = {row["question_id"]: row["problem"] for row in calls(tmp_path)}
        assert problems == {"q1": "refused", "q2": "engine_failed", "q3": None}
        assert [len(wave) for wave in server.waves()] == [3, 1], "engine.retries=1"
        server.answer = lambda body: Answer()
        succeeded(gistmill("retry", f"warehouse={tmp_path / 'warehouse'}", "cluster=inline"))
        assert len(server.waves()[-1]) == 2
    assert {row["problem"] for row in calls(tmp_path)} == {None}


@pytest.mark.slow
def test_a_refused_batch_ends_the_run_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with BatchServer(statuses=["failed"], why="billing limit reached") as server:
        command = words(tmp_path, server)
        done = gistmill(*command)
        assert done.returncode == 4, done.stderr
        assert last_words(done) == (
            f"engine.base_url={server.url}: the server refuses a batch (batch-0 failed billing "
            "limit reached); run the same command to resume once that is fixed"
        )
        succeeded(gistmill(*command))
    assert len(calls(tmp_path)) == NUM_CALLS


@pytest.mark.slow
def test_a_rater_may_be_another_batch_engine_with_a_price_of_its_own(tmp_path: Path) -> None:
    with BatchServer(answer=lambda body: Answer(text="yes")) as server, BatchServer() as other:
        other.answer, other.model = server.answer, {"id": "judge", "max_model_len": 2000}
        rater = ("rater=batch", f"rater.base_url={other.url}", "rater.model=judge",
                 "rater.wave_seconds=1.0", "rater.look_seconds=0.05", "run=r",
                 "engine.price.input=1", "engine.price.output=2", "engine.price.cached_input=0.5",
                 "rater.price.input=10", "rater.price.output=20")  # fmt: skip
        command = [word for word in words(tmp_path, server) if word != "rater=none"]
        planned = json.loads(succeeded(gistmill("plan", *command[1:], *rater, "--json")))
        assert {stage["stage"] for stage in planned["stages"] if stage["expected"]["money"]} > {
            "answer", "rate"
        }  # fmt: skip
        succeeded(gistmill(*command, *rater))
    sums = """select engine, sum(prompt_tokens)::int p, sum(cached_tokens)::int c,
      sum(reply_tokens)::int r from calls group by all"""
    used = {row["engine"]: row for row in sql(tmp_path / "warehouse", sums)}
    of = {name: (row["p"], row["c"], row["r"]) for name, row in used.items()}
    (prompt, cached, reply), (judged, _, verdicts) = of["batch:m"], of["batch:judge"]
    report = json.loads(succeeded(gistmill("report", words(tmp_path, server)[7], "--json")))
    money = (prompt - cached + cached / 2 + 2 * reply + 10 * judged + 20 * verdicts) / 1e6
    assert cached and report["total"]["money"] == pytest.approx(money)
    assert len(other.batches) == 1 and len(other.waves()[0]) >= NUM_CLOSED + NUM_FROM_GISTS
