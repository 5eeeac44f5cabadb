"""A run is planned before it is executed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jobs.graph.preparation
from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import read_run
from jobs.run import launch
from pipeline.core.errors import UsageError
from pipeline.store import connect
from pipeline.store.sql.connection import query
from stages.corpora import load

WORDS = ("corpus=synthetic", "corpus.num_documents=12", "corpus.words=60", "corpus.questions=2",
         "memory=uniform", "methods=gist_only", "rater=none", "run=night",
         "cluster=inline")  # fmt: skip


def test_the_hash_of_a_corpus_is_that_of_every_row(tmp_path: Path) -> None:
    def digest(*words: str) -> str:
        resolved = read_run([*WORDS, *words, f"warehouse={tmp_path}"])
        return prepare(resolved, tmp_path, lambda line: None).corpus_sha

    assert digest() == digest("run=other") != digest("corpus.questions=1") != digest("limit=11")


def test_a_corpus_that_breaks_in_the_middle_ends_the_run_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(corpus: Any) -> Iterator[Any]:
        for number, loaded in enumerate(load(corpus)):
            if number == 6:
                raise UsageError("corpus.path=x: the seventh file is no text; fix it")
            yield loaded

    resolved = read_run([*WORDS, f"warehouse={tmp_path}"])
    with monkeypatch.context() as patched, pytest.raises(UsageError, match="the seventh file"):
        patched.setattr(jobs.graph.preparation, "load", broken)
        launch.run(resolved, lambda line: None)
    assert not (tmp_path / "tables" / "calls").exists()
    assert launch.run(resolved, lambda line: None).exit_code == 0
    with connect(tmp_path) as connection:
        assert len(query(connection, "from answers")) == 24
