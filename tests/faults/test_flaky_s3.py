"""Corpus and warehouse in an object store, which answers 503, hangs up, hangs, or loses its reply;
and a run there that is killed once in the middle."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
import ray

from pipeline.core.errors import StorageError
from pipeline.core.settings import CONF
from pipeline.files import storage
from tests.faults.scripted_run import complaint
from tests.support.clusters.s3_server import BUCKET, How, Outage, client, flaky_s3_server, names
from tests.support.command import ROOT, gistmill, refused, sql, succeed

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

TABLES = ("documents", "questions", "pages", "gists", "lookups", "answers", "ratings", "scores")
METHODS = "methods=readagent_p(max_pages=2),bm25(top_k=3),constant"
WORDS = ("experiment=demo", f"corpus.path=s3://{BUCKET}/demo", "cluster.storage_seconds=60.0")
Server = tuple[dict[str, str], Outage]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Its environment is that of the commands, and of workers, whose Ray this process starts."""
    ray.shutdown()
    with flaky_s3_server() as (environment, outage):
        for file in (CONF / "demo").iterdir():
            client(environment).upload_file(str(file), BUCKET, f"demo/{file.name}")
        with pytest.MonkeyPatch.context() as patch:
            # Else the library's own attempts, with pauses of theirs, hide ours.
            for key, value in {**environment, "AWS_MAX_ATTEMPTS": "1"}.items():
                patch.setenv(key, value)
            yield environment, outage
    ray.shutdown()


@pytest.fixture
def outage(server: Server) -> Iterator[Outage]:
    yield server[1]
    server[1].end()


def rows(warehouse: str | Path, table: str) -> list[dict[str, Any]]:
    """A table's rows, but for where its corpus lay."""
    return sql(warehouse, f"select * exclude (step_id, unit) from {table} order by all")


@pytest.mark.parametrize("how", get_args(How))
def test_a_commit_is_made_once(outage: Outage, how: How) -> None:
    """Whoever's reply was lost finds a file, and it is his own."""
    path = storage.as_path(f"s3://{BUCKET}/{how}/shard")
    assert not storage.exists(path)
    outage.begin(how, times=8, method="PUT")
    assert storage.commit(path, b"mine")
    assert outage.num_refused >= (1 if how in ("hang", "lost") else 8)
    outage.end()
    assert storage.read(path) == b"mine"
    assert not storage.commit(path, b"another's")


@pytest.mark.usefixtures("server")
def test_the_first_commit_wins() -> None:
    path = storage.as_path(f"s3://{BUCKET}/race/one")
    contents = [f"writer {number}".encode() for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda content: storage.commit(path, content), contents))
    assert won.count(True) == 1
    assert path.read_bytes() == contents[won.index(True)]


def test_no_answer_is_not_a_no(outage: Outage) -> None:
    """A committed unit that is not seen would be made again."""
    path = storage.as_path(f"s3://{BUCKET}/seen/a/shard")
    assert storage.commit(path, b"rows")
    for place in (path, path.parent):
        outage.begin("503", times=6)
        assert storage.exists(place)
        outage.end()
    for folder, pattern in ((path.parent, "*"), (path.parent.parent, "*/*")):
        outage.begin("503", times=6)
        assert storage.list_paths(folder, pattern) == [path]
        outage.end()
    outage.begin("503")
    refused = pytest.raises(StorageError, match="then run the same command to resume")
    with storage.limit_retries(0.0), refused:
        storage.list_paths(path.parent.parent, "*/*")


@contextmanager
def struck(
    environment: dict[str, str], warehouse: str, strike: Callable[[], None]
) -> Iterator[None]:
    """Strikes, in a thread, once a run has committed its first pages."""
    is_over = threading.Event()

    def watch() -> None:
        while not names(environment, f"{warehouse}/tables/pages/") and not is_over.is_set():
            time.sleep(0.05)
        strike()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    is_over.set()
    thread.join()


@pytest.mark.parametrize("hows", [("503", "reset"), ("500", "slow down"), ("torn", "lost")])
def test_a_run_survives_six_seconds_of_it(
    hows: tuple[How, How], server: Server, tmp_path: Path
) -> None:
    environment, outage = server
    num_refused: list[int] = []
    warehouse = "-".join(hows).replace(" ", "-")

    def strike() -> None:
        for how in hows:
            outage.begin(how, seconds=6.0)
            time.sleep(9.0)
            num_refused.append(outage.num_refused)

    at = f"s3://{BUCKET}/{warehouse}"
    with struck(environment, warehouse, strike):
        succeed("run", *WORDS, f"warehouse={at}", "run=night")
    outage.end()
    assert num_refused[0] > 0
    succeed("run", *WORDS, f"warehouse={tmp_path}", "run=night")
    assert rows(at, "answers") == rows(tmp_path, "answers")


def test_an_outage_that_stays_is_one_line(server: Server) -> None:
    environment, outage = server
    words = ("run", *WORDS[:2], f"warehouse=s3://{BUCKET}/down", "cluster.storage_seconds=2.0",
             "cluster.grace_minutes=0.2")  # fmt: skip
    with struck(environment, "down", lambda: outage.begin("503")):
        done = gistmill(*words)
    assert outage.num_refused > 0
    outage.end()
    assert complaint(done).endswith("put that right, then run the same command to resume")
    succeed(*words)


def test_a_run_that_is_killed_goes_on_and_comes_to_the_same(server: Server, tmp_path: Path) -> None:
    environment, warehouse = server[0], f"s3://{BUCKET}/w"
    words = ("run", *WORDS[:2], METHODS, f"warehouse={warehouse}", "run=night")
    driver = subprocess.Popen(
        [sys.executable, "-m", "gistmill", *words, "cluster=inline"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(names(environment, "w/tables/answers/")) < 2 and driver.poll() is None:
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert len(names(environment, "w/tables/scores/")) < 9, "three methods, three documents"
    done = json.loads(succeed(*words, "cluster=local", "--json"))
    assert done["exit_code"] == 0
    succeed("run", "experiment=demo", METHODS, f"warehouse={tmp_path}", "run=night")
    for table in TABLES:
        assert rows(warehouse, table) == rows(tmp_path, table)
    (units,) = sql(warehouse, "select count(*) as n, count(worker) as made from units")
    assert units["n"] == units["made"] > 30
    assert not [name for name in names(environment, "w/") if name.endswith(".part")]
    assert not names(environment, "w/runs/night/in_flight/")


@pytest.mark.usefixtures("server")
def test_a_store_that_cannot_be_reached_is_one_line() -> None:
    told = refused("run", "experiment=demo", "warehouse=s3://no-such-bucket/w")
    assert told.startswith("warehouse=s3://no-such-bucket/w: cannot be reached (")
    nowhere = f"corpus.path=s3://{BUCKET}/nowhere"
    told = refused("run", "experiment=demo", nowhere)
    assert told == f"s3://{BUCKET}/nowhere: no such file or folder; set corpus.path=..."
