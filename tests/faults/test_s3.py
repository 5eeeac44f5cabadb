"""Corpus and warehouse on an S3 server: the demo's run, killed once in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import ray

from pipeline.core.settings import CONF
from pipeline.files.storage import as_path, commit, map_files, write
from tests.support.clusters.s3_server import BUCKET, client, names, s3_server
from tests.support.command import ROOT, refused, sql, succeed

pytestmark = pytest.mark.slow

TABLES = ("documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores")
METHODS = "methods=readagent_p(max_pages=2),bm25(top_k=3),constant"
WORDS = (
    "experiment=demo",
    METHODS,
    f"corpus.path=s3://{BUCKET}/demo",
    f"warehouse=s3://{BUCKET}/w",
)


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Of the commands and of the workers, which is that of the process that starts their Ray."""
    ray.shutdown()
    with s3_server() as found:
        for file in (CONF / "demo").iterdir():
            client(found).upload_file(str(file), BUCKET, f"demo/{file.name}")
        with pytest.MonkeyPatch.context() as patch:
            for key, value in found.items():
                patch.setenv(key, value)
            yield found
    ray.shutdown()


def rows(warehouse: str | Path, table: str) -> list[dict[str, Any]]:
    """A table's rows, but for where its corpus lay."""
    return sql(warehouse, f"select * exclude (step_id, unit) from {table} order by all")


def test_the_first_commit_wins(environment: dict[str, str]) -> None:
    path = as_path(f"s3://{BUCKET}/race/one")
    contents = [f"writer {number}".encode() for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda content: commit(path, content), contents))
    assert won.count(True) == 1
    assert path.read_bytes() == contents[won.index(True)]
    write(path, b"another")
    stored = client(environment).get_object(Bucket=BUCKET, Key="race/one")["Body"].read()
    assert stored == b"another"
    assert map_files(lambda file: file.name, path.parent.glob("*")) == ["one"]


@pytest.mark.sampled
def test_a_run_that_is_killed_goes_on_and_comes_to_the_same(
    environment: dict[str, str], tmp_path: Path
) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-m", "jobs", "run", *WORDS, "run=night", "cluster=inline"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(names(environment, "w/tables/answers/")) < 2 and driver.poll() is None:
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    number = len(names(environment, "w/tables/scores/"))
    assert number < 9, "three methods, three documents"
    done = json.loads(succeed("run", *WORDS, "run=night", "cluster=local", "--json"))
    assert done["exit_code"] == 0
    succeed("run", "experiment=demo", METHODS, f"warehouse={tmp_path}", "run=night")
    for table in TABLES:
        assert rows(f"s3://{BUCKET}/w", table) == rows(tmp_path, table)
    (units,) = sql(f"s3://{BUCKET}/w", "select count(*) as n, count(worker) as made from units")
    assert units["n"] == units["made"] > 30
    assert not [name for name in names(environment) if name.endswith(".part")]
    assert not names(environment, "w/runs/night/in_flight/")


def test_a_store_that_cannot_be_reached_is_one_line(environment: dict[str, str]) -> None:
    told = refused("run", "experiment=demo", "warehouse=s3://no-such-bucket/w")
    assert told.startswith("warehouse=s3://no-such-bucket/w: cannot be reached (")
    nowhere = f"corpus.path=s3://{BUCKET}/nowhere"
    told = refused("run", "experiment=demo", nowhere)
    assert told == f"s3://{BUCKET}/nowhere: no such file or folder; set corpus.path=..."
    assert os.environ["AWS_ENDPOINT_URL"] == environment["AWS_ENDPOINT_URL"]
