"""Two commands at once: the same one waits for its turn, another one works beside it."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.run.graceful_stop import GracefulStop
from jobs.run.launch import run_lock
from pipeline.core.errors import EndedError
from pipeline.files.lease import RUN, UPKEEP, lease
from pipeline.store.runs.run_folder import RunFolder
from tests.support.clusters.cluster_settings import LOCAL, cluster
from tests.support.command import ROOT, sql, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

NUM_DOCUMENTS = 12
# A document has three pages, so three gists, and one question, of a call in each method.
METHODS, NUM_CALLS = "gist_only,closed_book", 5 * NUM_DOCUMENTS


def ending() -> GracefulStop:
    """Of a run whose deadline is now."""
    stop = GracefulStop(cluster("cluster.deadline=2999-01-01T00:00"))
    stop._over_at = stop._begins_at = time.time()
    return stop


def test_who_waits_ends_at_its_deadline(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "night")
    run.path.mkdir(parents=True)
    fields = {"token": "x", "host": "elsewhere", "pid": 7, "expires_at": time.time() + 3600}
    (run.path / f"{RUN}.1.lease").write_text(json.dumps(fields))
    ended = pytest.raises(EndedError, match=r"ended by cluster\.deadline=2999")
    with ended, run_lock(run.path, ending(), lambda line: None):
        pass


def test_who_begins_waits_for_what_deletes_units_of_removed_runs(tmp_path: Path) -> None:
    """And not for a compaction where no run was removed."""
    run, lines = RunFolder(tmp_path, "night"), list[str]()
    with lease(run.warehouse, UPKEEP):
        with run_lock(run.path, ending(), lines.append):
            assert lines == []
        (tmp_path / "removed").mkdir()
        (tmp_path / "removed" / "gone.parquet").write_bytes(b"")
        with pytest.raises(EndedError), run_lock(run.path, ending(), lines.append):
            pass
        (line,) = lines
    assert line.startswith(f"{tmp_path} is being compacted on {socket.gethostname()} (process ")
    with run_lock(run.path, ending(), lines.append):
        assert lines == [line]


def test_a_run_that_does_not_begin_leaves_nothing(tmp_path: Path) -> None:
    warehouse = tmp_path / "a" / "b"
    with run_lock(RunFolder(warehouse, "night").path, GracefulStop(LOCAL), lambda line: None):
        assert warehouse.exists()
    assert list(tmp_path.iterdir()) == []


def words(folder: Path, server: LoopbackServer) -> list[str]:
    numbers = range(1, NUM_DOCUMENTS + 1)
    questions = [question(number, of=number) for number in numbers]
    write(folder / "corpus", [document(number) for number in numbers], questions)
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        f"methods={METHODS}", f"warehouse={folder / 'warehouse'}", "engine=openai",
        f"engine.base_url={server.url}", "engine.model=m", "engine.max_workers=1",
        "engine.sequences=2", "run=night", "cluster=inline",
    ]  # fmt: skip


@contextmanager
def started(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """The command in a process of its own, which ends with the block."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs", *command], cwd=ROOT, stdout=pipe, stderr=pipe, text=True
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
@pytest.mark.parametrize("end", ["complete", "killed"])
def test_the_same_command_waits_for_the_first_or_takes_over_from_the_dead(
    tmp_path: Path, end: str
) -> None:
    """And asks nothing twice where the first comes to its end."""
    where, here = f"warehouse={tmp_path / 'warehouse'}", socket.gethostname()

    def slow(body: dict[str, Any]) -> Answer:
        return Answer(text="said in four words", seconds=0.3)

    with LoopbackServer(answer=slow) as server, started(words(tmp_path, server)) as first:
        until(lambda: len(server.asked) > (3 if end == "complete" else 10), first)
        assert json.loads(succeed("status", where, "--json"))["driver"] == f"{here}-{first.pid}"
        assert f"executed on {here} (process {first.pid}), " in succeed("status", where)
        with started(words(tmp_path, server)) as second:
            assert second.stderr is not None
            line = second.stderr.readline()
            assert f"run night is being executed on {here} (process {first.pid});" in line
            if end == "killed":
                first.kill()
                first.wait()  # a zombie would count as alive until its lease ends
            out, told = second.communicate(timeout=100)
            assert second.returncode == 0, told
            assert "gist_only" in out, "the report"
        if end == "complete":
            assert first.wait() == 0
            assert len(server.asked) == NUM_CALLS
    rows = sql(tmp_path / "warehouse", "select count(*) as n, count(problem) as p from answers")
    assert rows == [{"n": 2 * NUM_DOCUMENTS, "p": 0}]
    query = "select count(*) as n from all_calls"
    assert end == "killed" or sql(tmp_path / "warehouse", query) == [{"n": NUM_CALLS}]
    assert json.loads(succeed("status", where, "--json"))["driver"] is None
