"""A run is resolved once: what the words name is read, and its steps are built, in one place."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.graph import resolved_run
from pipeline.store import connect
from tests.support.command import succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

MADE = {"load_family": 1, "expand_methods": 1, "run_steps": 1}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a family and methods are read, steps are built, and DuckDB is connected."""
    found: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            found[name] += 1
            return function(*args, **named)

        return call

    for name in MADE:
        monkeypatch.setattr(resolved_run, name, counted(name, getattr(resolved_run, name)))
    monkeypatch.setattr("jobs.run.launch.connect", counted("connect", connect))
    return found


def words(folder: Path, *more: str) -> list[str]:
    return [
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        f"warehouse={folder / 'w'}", "run=night", *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_reads_what_it_names_once(tmp_path: Path, made: Counter[str]) -> None:
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    for _ in range(2):
        succeed(*words(tmp_path, "methods=gist_only,bm25(top_k=1..2)"))
        assert made == {**MADE, "connect": 1}
        made.clear()


@pytest.mark.slow
def test_a_run_that_grows_is_resolved_with_what_it_had(tmp_path: Path, made: Counter[str]) -> None:
    """Once as the command says, whose settings must be the run's, and once with both."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    succeed(*words(tmp_path, "methods=gist_only"))
    made.clear()
    succeed(*words(tmp_path, "methods=bm25(top_k=1)"))
    assert (made["load_family"], made["run_steps"], made["connect"]) == (2, 2, 1)
