"""A run that must end before it is through commits, and exits 4; of two at once one waits."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.config.run_config import deadline
from jobs.run.graceful_stop import GracefulStop
from jobs.run.launch import run_lock
from pipeline.core.errors import AccountingError, EndedError, StorageError, UsageError
from pipeline.files.lease import UPKEEP, lease
from pipeline.store.runs.run_folder import RunFolder
from tests.runs.test_openai_run import NUM_ANSWERS, NUM_GISTS, words
from tests.support.clusters.cluster_settings import cluster
from tests.support.command import ROOT, gistmill, refused, sql_values, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.engines.simulated import SIMULATED

NOW = datetime(2026, 11, 21, 20, 0)
# Documents of one gist and one answer, half a second each, one after the other.
DOCUMENTS = 80
WORDS = (
    "corpus=synthetic", f"corpus.num_documents={DOCUMENTS}", "corpus.words=200", "corpus.skew=0.0",
    "corpus.questions=1", *SIMULATED, "engine.sequences=1", "engine.max_workers=1",
    "engine.reply_tokens=25", "memory=uniform", "methods=gist_only", "rater=none", "run=night",
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("23:30", datetime(2026, 11, 21, 23, 30)),
        ("07:00", datetime(2026, 11, 22, 7, 0)),
        ("20:00", datetime(2026, 11, 22, 20, 0)),
        ("7:05", datetime(2026, 11, 22, 7, 5)),
        ("2026-12-01T07:00", datetime(2026, 12, 1, 7, 0)),
        ("tomorrow", "cluster.deadline=tomorrow: not a time; write 07:00"),
        ("25:00", "not a time"),
        ("0001-01-01T00:00", "not a time"),
        ("2026-11-21T19:59", "is in the past; give a later one"),
        ("2020-01-01T00:00+02:00", "is in the past"),
    ],
)
def test_a_deadline_is_the_next_such_time(given: str, found: datetime | str) -> None:
    if isinstance(found, datetime):
        assert deadline(given, NOW) == found
    else:
        with pytest.raises(UsageError, match=found):
            deadline(given, NOW)


def test_a_run_started_again_after_its_deadline_is_incomplete(tmp_path: Path) -> None:
    """As Kubernetes does it, which knows no exit codes. A new run with such a deadline is wrong."""
    words = ("cluster.deadline=2026-01-01T07:00+01:00", "run=night", f"warehouse={tmp_path / 'w'}")
    line = "cluster.deadline=2026-01-01T07:00+01:00: is in the past; give a later one"
    assert refused("run", *words) == line
    (tmp_path / "w" / "runs" / "night").mkdir(parents=True)
    (tmp_path / "w" / "runs" / "night" / "config.yaml").write_text("run: night")
    done = gistmill("run", *words)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"gistmill: {line}\n")


def test_a_deadline_holds_where_storage_refuses_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path, "night")
    run.path.mkdir(parents=True)
    (run.path / "alive").write_text("in the folder's place")
    over_at = deadline("23:30", NOW).timestamp()
    clock = SimpleNamespace(time=lambda: over_at - 30, monotonic=time.monotonic)
    monkeypatch.setattr("jobs.run.graceful_stop.time", clock)
    ending = GracefulStop(cluster("cluster.deadline=23:30", "cluster.grace_minutes=1.0"), NOW)
    with ending.watch(run, "launch"):
        assert ending.should_stop() is None
        assert not ending.has_begun  # it is sent again a second later
        clock.time = lambda: over_at
        assert str(ending.should_stop()) == "ended by cluster.deadline=23:30"
    assert ending.has_begun  # else the next phase would be executed


@pytest.mark.parametrize(("minutes", "is_over"), [(1.0, False), (1e-9, True)])
def test_what_is_in_flight_has_its_time_after_a_refusal(
    tmp_path: Path, minutes: float, is_over: bool
) -> None:
    """Then the run ends with it; rows that do not add up come before."""
    ending = GracefulStop(cluster(f"cluster.grace_minutes={minutes}"))
    with ending.watch(RunFolder(tmp_path, "night"), "launch"):
        for error in (StorageError("a full disk"), AccountingError("rows do not add up")):
            ending.done(error)
            assert ending.should_stop() is (error if is_over else None)
            assert ending.failure is error


@contextmanager
def started(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """The command in a process of its own, which ends with the block."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "gistmill", *command], cwd=ROOT, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(is_so: Callable[[], Any], *processes: "subprocess.Popen[str]") -> None:
    last = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < last
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)


def shards(warehouse: Path) -> dict[Path, int]:
    """Every table's files, and when each was made."""
    return {file: file.stat().st_mtime_ns for file in warehouse.glob("tables/*/*/*.parquet")}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("how", ["deadline", "SIGTERM"])
def test_what_is_in_flight_is_committed_and_the_same_command_does_the_rest(
    tmp_path: Path, how: str
) -> None:
    words = [*WORDS, f"warehouse={tmp_path}"]
    if how == "deadline":
        # A busy machine takes more than half a minute until the first answer.
        ends_at = datetime.fromtimestamp(time.time() + 60).isoformat()
        words += [f"cluster.deadline={ends_at}", "cluster.grace_minutes=0.1"]
    began = time.time()
    with started(["run", *words]) as driver:
        if how == "SIGTERM":
            until(lambda: len(list(tmp_path.glob("tables/answers/*/*"))) > 2, driver)
            driver.terminate()
        out, told = driver.communicate(timeout=110)
    assert driver.returncode == 4, told
    assert time.time() - began < 75 or how == "SIGTERM"
    assert "run night in warehouse" in out
    last = told.splitlines()[-1]
    assert last.startswith("ended by ") and how in last
    assert last.endswith(" inputs are left; run the same command to resume")
    ((num_answers,),) = sql_values(tmp_path, "select count(*) from answers")
    assert 0 < num_answers < DOCUMENTS
    # Nothing was in flight any more when the workers ended.
    made = "select (select count(*) from gists) + (select count(*) from answers)"
    assert sql_values(tmp_path, "select count(*) from calls") == sql_values(tmp_path, made)
    before = shards(tmp_path)
    succeed("run", *WORDS, f"warehouse={tmp_path}", "engine.sequences=16")  # the rest in seconds
    assert before.items() < shards(tmp_path).items()
    assert sql_values(tmp_path, "select count(*) from answers") == [(DOCUMENTS,)]
    calls = "select count(*) as n from calls group by document_id, stage"
    assert sql_values(tmp_path, f"select max(n) from ({calls})") == [(1,)]


def test_who_begins_waits_for_what_deletes_units_of_removed_runs(tmp_path: Path) -> None:
    """Until its deadline; and not for a compaction where no run was removed."""
    run, lines = RunFolder(tmp_path, "night"), list[str]()
    ending = GracefulStop(cluster("cluster.deadline=2999-01-01T00:00"))
    ending._over_at = ending._begins_at = time.time()
    with lease(run.warehouse, UPKEEP):
        with run_lock(run.path, ending, lines.append):
            assert lines == []
        (tmp_path / "removed").mkdir()
        (tmp_path / "removed" / "gone.parquet").write_bytes(b"")
        ended = pytest.raises(EndedError, match=r"ended by cluster\.deadline=2999")
        with ended, run_lock(run.path, ending, lines.append):
            pass
        (line,) = lines
    assert line.startswith(f"{tmp_path} is being compacted on {socket.gethostname()} (process ")
    with run_lock(run.path, ending, lines.append):
        assert lines == [line]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("end", ["complete", "killed"])
def test_the_same_command_waits_for_the_first_or_takes_over_from_the_dead(
    tmp_path: Path, end: str
) -> None:
    """And asks nothing twice where the first comes to its end."""
    warehouse, here = tmp_path / "warehouse", socket.gethostname()
    where = f"warehouse={warehouse}"
    more = ("engine.api_key_env=null", "engine.max_workers=1", "engine.sequences=2", "run=night")

    def slow(body: dict[str, Any]) -> Answer:
        return Answer(text="said in four words", seconds=2.0)

    with LoopbackServer(answer=slow) as server:
        command = words(tmp_path, server, *more, "cluster=inline")
        with started(command) as first:
            until(lambda: len(server.asked) > 3, first)
            status = json.loads(succeed("status", where, "--json"))
            assert status["driver"] == f"{here}-{first.pid}"
            assert f"executed on {here} (process {first.pid}), " in succeed("status", where)
            with started(command) as second:
                assert second.stderr is not None
                line = second.stderr.readline()
                assert f"run night is being executed on {here} (process {first.pid});" in line
                if end == "killed":
                    first.kill()
                    first.wait()  # a zombie would count as alive until its lease ends
                out, told = second.communicate(timeout=100)
                assert second.returncode == 0, told
                assert "gist_only" in out, "the report"
            assert end == "killed" or first.wait() == 0
    num_calls = NUM_GISTS + NUM_ANSWERS
    assert end == "killed" or len(server.asked) == num_calls
    query = "select count(*), count(problem) from answers"
    assert sql_values(warehouse, query) == [(NUM_ANSWERS, 0)]
    query = "select count(distinct request_sha) from calls"
    assert sql_values(warehouse, query) == [(num_calls,)]
    assert json.loads(succeed("status", where, "--json"))["driver"] is None
