"""An object store that answers 503, hangs up, hangs, or loses its reply."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest

from pipeline.core.errors import StorageError
from pipeline.core.settings import CONF
from pipeline.files.storage import as_path, commit, exists, limit_retries, list_paths, read
from tests.support.clusters.s3_server import BUCKET, How, Outage, client, flaky_s3_server, names
from tests.support.command import gistmill, sql, succeed

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

WORDS = ("experiment=demo", f"corpus.path=s3://{BUCKET}/demo", "cluster.storage_seconds=60.0")


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[dict[str, str], Outage]]:
    with flaky_s3_server() as (environment, outage):
        for file in (CONF / "demo").iterdir():
            client(environment).upload_file(str(file), BUCKET, f"demo/{file.name}")
        with pytest.MonkeyPatch.context() as patch:
            # Else the library's own attempts, with pauses of theirs, hide ours.
            for key, value in {**environment, "AWS_MAX_ATTEMPTS": "1"}.items():
                patch.setenv(key, value)
            yield environment, outage


@pytest.fixture
def outage(server: tuple[dict[str, str], Outage]) -> Iterator[Outage]:
    yield server[1]
    server[1].end()


@pytest.mark.parametrize("how", get_args(How))
def test_a_commit_is_made_once(outage: Outage, how: How) -> None:
    """Whoever's reply was lost finds a file, and it is his own."""
    path = as_path(f"s3://{BUCKET}/{how}/shard")
    assert not exists(path)
    outage.begin(how, times=8, method="PUT")
    assert commit(path, b"mine")
    assert outage.num_refused >= (1 if how in ("hang", "lost") else 8)
    outage.end()
    assert read(path) == b"mine"
    assert not commit(path, b"another's")


def test_no_answer_is_not_a_no(outage: Outage) -> None:
    """A committed unit that is not seen would be made again."""
    path = as_path(f"s3://{BUCKET}/seen/a/shard")
    assert commit(path, b"rows")
    for look in (
        lambda: exists(path),
        lambda: exists(path.parent),
        lambda: list_paths(path.parent),
        lambda: list_paths(path.parent.parent, "*/*"),
    ):
        outage.begin("503", times=6)
        assert look()
        outage.end()
    outage.begin("503")
    with (
        limit_retries(0.0),
        pytest.raises(StorageError, match="then run the same command to resume"),
    ):
        list_paths(path.parent.parent, "*/*")


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
    hows: tuple[How, How], server: tuple[dict[str, str], Outage], tmp_path: Path
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
    query = "select * exclude (step_id, unit) from answers order by all"
    assert sql(at, query) == sql(tmp_path, query)


def test_an_outage_that_stays_is_one_line(server: tuple[dict[str, str], Outage]) -> None:
    environment, outage = server
    words = ("run", *WORDS[:2], f"warehouse=s3://{BUCKET}/down", "cluster.storage_seconds=2.0",
             "cluster.grace_minutes=0.2")  # fmt: skip
    with struck(environment, "down", lambda: outage.begin("503")):
        done = gistmill(*words)
    assert outage.num_refused > 0
    outage.end()
    assert done.returncode == 4, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("gistmill: ")]
    assert len(lines) == 1
    assert lines[0].endswith("make sure that it answers, then run the same command to resume")
    assert "Traceback" not in done.stderr
    succeed(*words)
