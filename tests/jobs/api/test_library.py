"""`import gistmill`, as the docs show it and in a notebook; and `gistmill.testing`."""

import asyncio
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray

import gistmill
from gistmill import testing
from tests.support.command import ROOT, sql
from tests.support.docs.pages import blocks
from tests.support.runs.compared_run import ComparedRun
from tests.support.runs.finished_run import FinishedRun
from tests.support.texts.small_corpus import document, question, write


@pytest.mark.slow
def test_what_the_page_shows(tmp_path: Path) -> None:
    code, *_ = blocks("docs/from_python.md", "python")  # others need a server
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    run, *_ = done.stdout.split()
    assert done.stdout.startswith(f"{run} 0 ()\n") and "question_id" in done.stdout
    assert re.search(r"^bm25\(top_k=2\) \d+\.\d+ \d+$", done.stdout, re.MULTILINE)
    assert sql(tmp_path / "nights", "from scores limit 1", f"run={run}")
    assert (tmp_path / "nights" / "runs" / "floor" / "report.md").is_file()


@pytest.mark.slow
def test_a_loop_that_runs_and_a_ray_that_is_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a notebook; and a second call finds all of it done."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    (tmp_path / "corpus" / "questions.jsonl").open("a").write('{"torn\n')
    words = ["corpus=tables", f"corpus.path={tmp_path / 'corpus'}", "methods=constant",
             "rater=none", f"warehouse={tmp_path / 'w'}", "max_problem_rate=1"]  # fmt: skip
    if not ray.is_initialized():
        ray.init(address="local", include_dashboard=False, log_to_driver=False)

    async def cell() -> tuple[gistmill.RunResult, gistmill.RunResult]:
        return gistmill.run(*words), gistmill.run(gistmill.config(*words))

    with caplog.at_level(logging.WARNING, logger="gistmill"):
        first, again = asyncio.run(cell())
    assert ray.is_initialized(), "the Ray that was up is left alone"
    assert (first.exit_code, first.complaints, first.run) == (0, (), again.run)
    assert again.exit_code == 0
    assert first.warehouse == str(tmp_path / "w")
    assert [row.method for row in first.report.rows] == ["constant"]
    assert len(first.connect().sql("from answers where problem is null").fetchall()) == 1
    assert any("bad_input" in record.getMessage() for record in caplog.records)


def test_reports_views_and_comparisons(night: FinishedRun, tmp_path: Path) -> None:
    report = gistmill.report(night.warehouse)
    (row,) = report.rows
    assert (report.run, row.method, row.counts["n"]) == ("night", "readagent_p(max_pages=5)", 3)
    (row,) = gistmill.report(night.warehouse, "night", where="question_id = 'q3'").rows
    assert row.counts["n"] == 1
    with gistmill.connect(night.warehouse) as connection:
        assert connection.sql("select count(*) from answers").fetchall() == [(3,)]
    scores = {"m1": {"squad_em": {"a1": 3.0}}, "m2": {"squad_em": {"a1": 1.0}}}
    made = ComparedRun(tmp_path, scores)
    found = gistmill.compare("m2", warehouse=made.warehouse.folder, run="r", metric="squad_em")
    assert isinstance(found, gistmill.Comparison)
    assert [row.figures and row.figures.difference for row in found.rows] == [-2]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda w: gistmill.run("limitt=3"), "limitt: no such key; nearest: limit"),
        (lambda w: gistmill.run("corpus=tables", "corpus.path=/nowhere"), "/nowhere: no such file"),
        (lambda w: gistmill.run(gistmill.config("experiment=demo"), "limit=3"), "give one config"),
        (lambda w: gistmill.report(w, "gone"), "run=gone: not in"),
        (lambda w: gistmill.report(w, where="nosuch = 1"), "nosuch"),
        (lambda w: gistmill.compare("m4", warehouse=w), "'m4': no such method in run night"),
    ],
)
def test_mistakes_are_exceptions(
    night: FinishedRun, call: Callable[[Any], object], says: str
) -> None:
    with pytest.raises(gistmill.UsageError, match=says) as raised:
        call(night.warehouse)
    assert raised.value.exit_code == 2


def test_a_deadline_that_has_passed(night: FinishedRun) -> None:
    words = night.words(night.warehouse)[1:]
    with pytest.raises(gistmill.IncompleteError, match="is in the past") as raised:
        gistmill.run(*words, "cluster.deadline=2001-01-01T07:00")
    assert raised.value.exit_code == 4


def test_the_names_of_the_library_are_there() -> None:
    assert all(getattr(gistmill, name) is not None for name in gistmill.__all__)
    assert dir(gistmill) == sorted(gistmill.__all__)
    assert all((ROOT / name / "py.typed").is_file() for name in ("pipeline", "gistmill"))
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        gistmill.runn  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow
@pytest.mark.usefixtures("registries")
def test_the_words_of_a_test_go_before_its_own(tmp_path: Path) -> None:
    """Pages of 24 words have two of its paragraphs; the same call again resumes the run. The plugin
    brings nothing, as what it brought would stay in the process."""
    own = ("bm25(top_k=1)", None, "memory.words=24", "run=own")
    rows = testing.run(tmp_path, *own, folder=tmp_path)
    assert [page["num_words"] for page in rows["pages"]] == [24, 24]
    assert (tmp_path / "warehouse" / "runs" / "own").is_dir()
    assert len(rows["calls"]) == 2 and testing.run(tmp_path, *own, folder=tmp_path) == rows


@pytest.mark.usefixtures("registries")
def test_another_memory_takes_the_words_of_its_own_away(tmp_path: Path) -> None:
    """And a request without a reply is a row with a problem."""
    rows = testing.run(tmp_path, "bm25(top_k=1)", [], "memory=tokens")
    assert [page["num_words"] for page in rows["pages"]] == [48], "all of it in one segment"
    assert {row["problem"] for row in rows["answers"]} == {"engine_failed"}
    for folder, replies, says in (
        (tmp_path / "missing", None, "no such folder"),
        (tmp_path, [{"promt": "answer"}], "replies"),
    ):
        with pytest.raises(gistmill.UsageError, match=says):
            testing.run(folder, "full_text", replies)
