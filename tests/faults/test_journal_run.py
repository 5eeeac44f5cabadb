"""A whole run is killed in the middle of a long document: the server counts what is asked again."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.command import ROOT, own_process, sql, succeeded
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

PAGES, AT_ONCE, NUM_ANSWERS = 80, 4, 1
KILLED_AT = 70


def words(folder: Path, server: LoopbackServer) -> list[str]:
    paragraphs = [f"{n} " + " ".join(f"w{n}x{k}" for k in range(39)) for n in range(PAGES)]
    text = "\n\n".join(paragraphs)
    write(folder / "corpus", [{**document(1), "text": text}], [question(1, of=1)])
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
        "methods=gist_only", f"warehouse={folder / 'warehouse'}", "engine=openai",
        f"engine.base_url={server.url}", "engine.model=m", "engine.api_key_env=null",
        f"engine.sequences={AT_ONCE}",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled
def test_a_killed_run_asks_again_what_was_in_flight(tmp_path: Path) -> None:
    """SIGKILL for the driver and for all that it has started: Ray's processes and the worker. The
    run goes on without Ray."""

    slow = Answer(seconds=0.1)
    with LoopbackServer(
        answer=lambda body: slow, model={"id": "m", "max_model_len": 50_000}
    ) as server:
        command = words(tmp_path, server)
        driver = subprocess.Popen(
            [sys.executable, "-m", "jobs", *command],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while len(server.asked) < KILLED_AT and driver.poll() is None:
            time.sleep(0.01)
        process = psutil.Process(driver.pid)
        for one in [process, *process.children(recursive=True)]:
            one.kill()
        driver.wait()
        assert not list((tmp_path / "warehouse" / "tables" / "gists").glob("*/*.parquet"))
        succeeded(own_process(*command))
    assert PAGES + NUM_ANSWERS <= len(server.asked) <= PAGES + NUM_ANSWERS + AT_ONCE
    (count,) = sql(tmp_path / "warehouse", "select count(*) n, count(problem) bad from calls")
    assert count == {"n": PAGES + NUM_ANSWERS, "bad": 0}
    assert not list((tmp_path / "warehouse" / "journal").glob("*/*"))
