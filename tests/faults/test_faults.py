"""What dies, hangs or never starts: the work goes on, or the run ends in one line, in time."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.scripted_run import REPLY, end_of, in_its_midst, last_line, words
from tests.support.command import gistmill, own_process, sql, succeed

pytestmark = [pytest.mark.slow, pytest.mark.sampled]


def test_a_unit_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    """Its document's own words kill the engine wherever gists are made of them."""
    poison = {"prompt": "gist", "match": "mill3", "die": True}
    succeed(*words(tmp_path, poison, REPLY))
    warehouse = tmp_path / "warehouse"
    rows = sql(warehouse, "select distinct document_id, problem from gists order by all")
    assert rows == [
        {"document_id": f"d{n}", "problem": "unit_failed" if n == 3 else None} for n in range(1, 7)
    ]
    answers = sql(warehouse, "select method, document_id, problem from answers order by all")
    assert answers == [
        {"method": method, "document_id": f"d{n}", "problem": problem}
        for method, hurt in (("bm25(top_k=1)", None), ("gist_only", "upstream"))
        for n in range(1, 7)
        for problem in (hurt if n == 3 else None,)
    ], "only what is made from its gists lacks them"
    (detail,) = sql(warehouse, "select distinct detail from gists where problem is not null")
    assert "a worker crashed twice" in detail["detail"]
    assert not list(warehouse.glob("runs/*/in_flight/*")), "nothing is left to blame a later run"


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    driver = in_its_midst(words(tmp_path, {"reply": "slow", "seconds": 0.5}), tmp_path)
    warehouse = tmp_path / "warehouse"
    while not (alive := next(warehouse.glob("runs/*/alive/*.json"), None)):
        assert driver.poll() is None, "the run ended before its worker could be killed"
        time.sleep(0.02)
    os.kill(int(alive.stem.rpartition("-")[2]), signal.SIGKILL)
    done = end_of(driver)
    assert done.returncode == 0, done.stderr
    rows = sql(warehouse, "select count(*) as n, count(problem) as problems from answers")
    assert rows == [{"n": 12, "problems": 0}]


@pytest.mark.parametrize(
    ("script", "more", "line"),
    [
        ({"start_fails": "model nowhere: not there"}, [], "model nowhere: not there"),
        ({"start_dies": True}, [], "an engine's process died 2 times while it started"),
        ({"start_seconds": 600}, ["engine.start_timeout=3.0"], "did not start within 3 s"),
    ],
)
def test_an_engine_that_cannot_start_ends_the_run_in_time(
    tmp_path: Path, script: dict[str, Any], more: list[str], line: str
) -> None:
    began = time.monotonic()
    told = last_line(gistmill(*words(tmp_path, REPLY, **script), *more), code=1)
    assert line in told
    assert time.monotonic() - began < 90


def test_what_hangs_ends_the_run(tmp_path: Path) -> None:
    """A request that never ends, and a deadline that does not help. In a process of its own, whose
    end is what ends such a worker."""
    command = words(tmp_path, {"prompt": "answer", "hang": True}, REPLY)
    told = last_line(own_process(*command, "cluster.stall_minutes=0.2"), code=1)
    assert told.startswith("gistmill: nothing was finished for cluster.stall_minutes=0.2; ")


def test_a_slow_start_is_no_hang(tmp_path: Path) -> None:
    """A start of 20 s with a limit of 12 s on standing still, and all is done after it."""
    command = words(tmp_path, REPLY, start_seconds=20.0)
    out = succeed(*command, "cluster.stall_minutes=0.2", "--json")
    assert json.loads(out)["exit_code"] == 0
