"""A run killed anywhere and started again ends as one that was never interrupted.

The scripted engine answers after a while, so that a kill finds work under way. Twelve drivers are
killed with SIGKILL when a drawn number of shards is committed: three have a Ray of their own, three
work without Ray, the others on a Ray that stays, where their workers live on for a moment.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.store import connect
from tests.support.clusters.ray_head import TOKEN, RayHead, environment
from tests.support.command import ROOT, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

KILLS = 12
TABLES = (
    "documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores", "calls",
)  # fmt: skip
SCRIPT = {
    "replies": [
        {"prompt": "gist", "reply": "A short gist.", "seconds": 0.05},
        {"prompt": "look_up_p", "reply": "I want to look up Page [2, 0] to see", "seconds": 0.05},
        {"prompt": "rate_strict", "reply": "NO", "seconds": 0.05},
        {"prompt": "rate_permissive", "reply": "Yes, partially", "seconds": 0.05},
        {"match": "number [0-4]", "reply": "One of five answers.", "seconds": 0.1},
        {"reply": "Another answer.", "seconds": 0.1},
    ]
}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of the run, all but its warehouse."""
    folder = tmp_path_factory.mktemp("resume")
    numbers = range(12)
    questions = [question(4 * n + i, of=n) for n in numbers for i in range(4)]
    write(folder / "corpus", [document(n) for n in numbers], questions)
    script = folder / "script.yaml"
    script.write_text(yaml.safe_dump(SCRIPT))
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        "methods=gist_only,readagent_p(max_pages=2),bm25(top_k=1)", "engine=scripted",
        f"engine.script={script}", "engine.sequences=3", "engine.max_workers=2",
        "engine.cpus_per_worker=0.5", "run=night",
    ]  # fmt: skip


def shards(warehouse: Path) -> int:
    """Shards of stages; the two of loading are committed before Ray starts."""
    found = warehouse.glob("tables/*/*/*.parquet")
    return sum(path.parts[-3] not in ("documents", "questions") for path in found)


def rows(warehouse: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of the run, sorted, run-time columns apart."""
    with connect(warehouse) as connection:
        of_calls = "* exclude (seconds, started_at, worker)"
        return {
            table: connection.execute(
                f"select {of_calls if table == 'calls' else '*'} from {table} order by all"
            ).fetchall()
            for table in TABLES
        }


def kill_at(words: list[str], warehouse: Path, number: int, wait: bool, cluster: list[str]) -> int:
    """Start the run, kill its driver once `number` shards are committed; how many are then, or,
    after a `wait` for its workers to notice, in the end."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "jobs", *words, f"warehouse={warehouse}", *cluster],
        cwd=ROOT,
        env=environment(TOKEN) if "cluster=ray" in cluster else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while shards(warehouse) < number and driver.poll() is None:
        time.sleep(0.005)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    if not wait:
        return shards(warehouse)  # its workers commit beside those of the next driver
    before = -1
    while before != (before := shards(warehouse)):
        time.sleep(2)  # its workers go on until they notice
    return before


@pytest.fixture(scope="module")
def whole(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made on Ray; most runs that are killed are finished without it."""
    warehouse = tmp_path_factory.mktemp("whole") / "warehouse"
    succeed(*words, f"warehouse={warehouse}", "cluster=local")
    return warehouse


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("trial", range(KILLS))
def test_a_killed_run_ends_as_an_uninterrupted_one(
    words: list[str], whole: Path, tmp_path: Path, trial: int, request: pytest.FixtureRequest
) -> None:
    expected, total = rows(whole), shards(whole)
    number = random.Random(trial).randint(1, total * 3 // 4)
    if trial % 4 == 0:
        cluster, again = ["cluster=local"], "cluster=local"
    elif trial % 4 == 1:
        cluster, again = ["cluster=inline"], "cluster=inline"
    else:
        head: RayHead = request.getfixturevalue("head")
        cluster, again = ["cluster=ray", f"cluster.address={head.gcs}"], "cluster=inline"
    is_patient = trial % 2 == 0
    committed = kill_at(words, tmp_path, number, is_patient, cluster)
    assert committed >= number
    assert committed < total or is_patient
    succeed(*words, f"warehouse={tmp_path}", again)
    assert (rows(tmp_path), shards(tmp_path)) == (expected, total)


@pytest.mark.slow
def test_two_workers_each_commit_units(words: list[str], tmp_path: Path) -> None:
    out = json.loads(succeed(*words, f"warehouse={tmp_path}", "cluster=local", "--json"))
    assert len(out["workers"]["reading"]) == 2
    assert all(units > 0 for units in out["workers"]["reading"].values())
