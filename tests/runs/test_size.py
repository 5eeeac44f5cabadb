"""A long document: the memory that a worker and the driver take; and one of many questions, which
two workers share."""

import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import psutil
import pytest

from tests.support.command import ROOT, sql_values, succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

# Runs a command, and prints its peak memory in KB: this process has had other children, too.
PEAK = """import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
WORDS = 2_000_000  # 12 MB of text


@pytest.mark.sampled
def test_a_long_document_needs_a_small_multiple_of_its_size(tmp_path: Path) -> None:
    words = [
        "run", "corpus=synthetic", "corpus.num_documents=1", f"corpus.words={WORDS}",
        "corpus.skew=0.0", "memory=uniform", "methods=gist_only,bm25(top_k=3)",
        "rater=none", "engine.max_workers=1", "cluster.scoring_workers=1", f"warehouse={tmp_path}",
    ]  # fmt: skip
    most = {"driver": 0.0, "worker": 0.0}
    with subprocess.Popen(
        [sys.executable, "-m", "gistmill", *words], cwd=ROOT, stdout=DEVNULL, stderr=DEVNULL
    ) as driver:
        while driver.poll() is None:
            with suppress(psutil.Error):  # a process has just ended
                for process in psutil.Process(driver.pid).children(recursive=True):
                    if "MapWorker" in " ".join(process.cmdline()):  # Ray's, that reads or scores
                        most["worker"] = max(most["worker"], process.memory_info().rss / 1e6)
                rss = psutil.Process(driver.pid).memory_info().rss
                most["driver"] = max(most["driver"], rss / 1e6)
            time.sleep(0.2)
    assert driver.returncode == 0
    # 0.4 GB of libraries and thirteen times the text.
    assert 200 < most["worker"] < 400 + 13 * 12
    assert 200 < most["driver"] < 400 + 13 * 12


@pytest.mark.sampled
@pytest.mark.timeout(200)
def test_sixty_thousand_questions_of_one_document_are_planned(tmp_path: Path) -> None:
    """In time that grows with their number: by its square it would be many minutes."""
    questions = [question(number, of=1) for number in range(60_000)]
    write(tmp_path / "corpus", [document(1)], questions)
    words = ["plan", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM,
             "rater=none", "methods=gist_only,bm25", f"warehouse={tmp_path / 'w'}"]  # fmt: skip
    command = [sys.executable, "-c", PEAK, sys.executable, "-m", "gistmill", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert re.search(r"\| answer +\| +120k \|", done.stdout), done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1]) < 1.2 * 2**20  # GB, as KB


def test_a_long_list_of_questions_is_shared_and_done_once(tmp_path: Path) -> None:
    """One long question list and one short one; both workers have to help with the first."""
    asked = [question(n, of=1) for n in range(24)] + [question(99, of=2)]
    write(tmp_path / "corpus", [document(1), document(2)], asked)
    words = [
        "run", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "--json",
        "methods=gist_only,readagent_p(max_pages=1)", f"warehouse={tmp_path / 'warehouse'}",
    ]  # fmt: skip
    chunks = "questions_per_unit=4"
    here = ("engine.min_workers=2", "engine.cpus_per_worker=0.5", "cluster=local")
    workers = json.loads(succeed(*words, chunks, *here))["workers"]  # units by phase and worker
    assert [*workers] == ["reading: memory", "reading: questions"]
    assert sum(workers["reading: memory"].values()) == 2 * 2, "pages and gists of two documents"
    assert len(workers["reading: questions"]) == 2, "both workers"

    rows = sql_values(
        tmp_path / "warehouse",
        """select count(*), count(distinct question_id), count(problem), count(distinct unit)
        from answers group by method""",
    )
    assert [row[:3] for row in rows] == [(25, 25, 0)] * 2
    # The short list, and six chunks by the questions' hashes, or five if one of them is empty.
    assert all(6 <= num_units <= 7 for *_, num_units in rows)

    for more in ((chunks, "engine.max_workers=1"), ("questions_per_unit=50",)):
        assert json.loads(succeed(*words, *more))["calls"] == {}, "cut otherwise, the same run"
