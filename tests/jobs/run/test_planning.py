"""A new run's documents are executed while the rest of its corpus is still being loaded."""

import os
import signal
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import jobs.graph.preparation
from jobs.graph.preparation import CorpusSha, prepare
from jobs.graph.read_run import read_run
from jobs.graph.run_plan import RunPlan
from jobs.run import launch, planning
from jobs.run.graceful_stop import GracefulStop
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query
from stages.corpora import load

WORDS = ("corpus=synthetic", "corpus.num_documents=12", "corpus.words=60", "corpus.questions=2",
         "memory=uniform", "methods=gist_only", "rater=none", "run=night")  # fmt: skip


def rows_of(warehouse: Path) -> list[dict[str, Any]]:
    with connect(warehouse) as connection:
        return query(connection, "select question_id, answer from answers order by all")


def test_the_hash_of_a_corpus_is_that_of_every_row(tmp_path: Path) -> None:
    def digest(*words: str) -> str:
        resolved = read_run([*WORDS, *words, f"warehouse={tmp_path}"])
        return prepare(resolved, tmp_path, lambda line: None).corpus.digest()

    assert CorpusSha().digest() == sha256(b"").hexdigest()[:12]
    assert digest() == digest("run=other") != digest("corpus.questions=1") != digest("limit=11")


class Slow:
    """A corpus whose second half is loaded once a first call has been committed."""

    def __init__(self, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.was_waited_for = threading.Event()
        self._calls = warehouse / "tables" / "calls"
        self._load = load
        monkeypatch.setattr(planning, "_SECONDS_BEFORE_THE_FIRST", 0.0)
        monkeypatch.setattr(jobs.graph.preparation, "load", self)

    def __call__(self, corpus: Any) -> Iterator[Any]:
        for number, loaded in enumerate(self._load(corpus)):
            if number == 6:
                self.wait()
            yield loaded

    def wait(self) -> None:
        for _ in range(600):
            if any(self._calls.glob("*/*.parquet")):
                self.was_waited_for.set()
                return
            threading.Event().wait(0.1)


def test_all_that_is_planned_when_a_run_ends_is_in_its_planned_inputs(tmp_path: Path) -> None:
    resolved = read_run([*WORDS, f"warehouse={tmp_path}"])
    folder = RunFolder(tmp_path, "night")
    plan = RunPlan(resolved.steps, folder.plan_files, seconds=0.0)
    prepared = prepare(resolved, tmp_path, lambda line: None, plan=plan)
    with GracefulStop(resolved.config.cluster) as stop:
        assert planning.start_launch(prepared, folder)
        with planning.planned_meanwhile(prepared, folder, stop):
            while len(list((tmp_path / "runs" / "night" / "plan").iterdir())) < 3:
                threading.Event().wait(0.01)
    planned = [document.document_id for document in plan.documents()]
    assert len(planned) >= 3
    with connect(tmp_path, "night") as connection:
        rows = query(connection, "select distinct document_id from all_planned")
    assert {row["document_id"] for row in rows} == {*planned}
    assert plan.is_complete == (len(planned) == 12)


def test_a_plan_that_is_stopped_is_not_complete(tmp_path: Path) -> None:
    resolved = read_run([*WORDS, f"warehouse={tmp_path}"])
    plan = RunPlan(resolved.steps, seconds=0.0)
    prepared = prepare(resolved, tmp_path, lambda line: None, plan=plan)
    next(prepared.left)
    plan.stop()
    assert [*prepared.left] == [None]
    assert len([*plan.documents()]) == 2 and not plan.is_complete


@pytest.mark.slow
def test_the_first_are_executed_before_the_last_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rows of a run without Ray, which is planned whole."""
    whole, early = tmp_path / "whole", tmp_path / "early"
    made = launch.run(read_run([*WORDS, "cluster=inline", f"warehouse={whole}"]), lambda line: None)
    slow = Slow(early, monkeypatch)
    resolved = read_run([*WORDS, f"warehouse={early}"])
    outcome = launch.run(resolved, lambda line: None)
    assert slow.was_waited_for.is_set()
    assert (outcome.exit_code, outcome.complaints) == (0, ())
    assert outcome.calls == made.calls
    assert rows_of(early) == rows_of(whole) != []
    folders = [RunFolder(as_path(folder), "night") for folder in (early, whole)]
    shas = [folder.launches()[-1]["corpus_sha"] for folder in folders]
    assert shas[0] == shas[1] is not None
    assert not (early / "runs" / "night" / "plan").exists()
    again = launch.run(resolved, lambda line: None)
    assert (again.exit_code, again.calls) == (0, {})


@pytest.mark.slow
def test_a_run_that_is_stopped_loads_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path, monkeypatch)
    of_others = slow.wait

    def stopped() -> None:
        of_others()
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(5)  # who watches looks every second

    monkeypatch.setattr(slow, "wait", stopped)
    resolved = read_run([*WORDS, f"warehouse={tmp_path}"])
    outcome = launch.run(resolved, lambda line: None)
    (complaint,) = outcome.complaints
    assert outcome.exit_code == 4
    assert "inputs and documents not loaded are left; run the same command to resume" in complaint
    monkeypatch.undo()
    again = launch.run(resolved, lambda line: None)
    assert (again.exit_code, len(rows_of(tmp_path))) == (0, 24)


@pytest.mark.slow
def test_a_corpus_that_breaks_later_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path, monkeypatch)

    def broken() -> None:
        raise UsageError("corpus.path=x: the seventh file is no text; fix it")

    monkeypatch.setattr(slow, "wait", broken)
    with pytest.raises(UsageError, match="the seventh file"):
        launch.run(read_run([*WORDS, f"warehouse={tmp_path}"]), lambda line: None)
    monkeypatch.undo()
    outcome = launch.run(read_run([*WORDS, f"warehouse={tmp_path}"]), lambda line: None)
    assert outcome.exit_code == 0
    assert len(rows_of(tmp_path)) == 24
