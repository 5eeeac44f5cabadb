"""A new plugin of each kind where its author would run it: in a notebook and by the command from
the folder that holds it, and on a Ray whose workers are on another machine; run, and run again."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ray
from nbformat.v4 import new_code_cell, new_notebook
from ray.cluster_utils import Cluster

from jobs.plugin.new_plugin import KINDS, new_plugin
from tests.support.command import ROOT, sql_values, succeeded
from tests.support.docs.notebooks import execute

pytestmark = pytest.mark.slow

SYNTHETIC = ("corpus=synthetic", "corpus.num_documents=2", "corpus.words=1200")
# By kind the words of a run, and a query of two equal numbers: rows that there must be, and rows
# that the plugin made.
OF_KIND = {
    "method": ((*SYNTHETIC, "memory=uniform", "methods=own_method(top_k=1..2)"),
               "select count(*), sum((used = [0] or used = [0, 1])::int) from lookups"),
    "metric": ((*SYNTHETIC, "methods=full_text", "family=own_metric"),
               "select count(*), count(value) from scores where metric = 'own_metric'"),
    "engine": ((*SYNTHETIC, "methods=full_text", "engine=own_engine"),
               "select count(*), sum((engine = 'own_engine')::int) from calls"),
    "judge": ((*SYNTHETIC, "methods=full_text", "family=own_judge"),
              "select count(*), count(value) from ratings where rubric = 'own_judge'"),
    "corpus": (("corpus=own_corpus", "corpus.path=own_corpus/sample.tsv", "methods=full_text"),
               "select 2, count(*) from documents where corpus = 'own_corpus'"),
    "family": ((*SYNTHETIC, "methods=gist_only", "family=own_family"),
               "select count(*), sum((messages[-1].content like 'Write down%')::int) from calls "
               "where prompt = 'gist'"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a new plugin of each kind."""
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        new_plugin(f"own_{kind}", kind)
    return tmp_path


def words(kind: str, *more: str) -> list[str]:
    return [*OF_KIND[kind][0], f"plugins=own_{kind}", f"warehouse={kind}", "run=own", *more]


def made(folder: Path, kind: str) -> tuple[int, int]:
    """The number of rows that the plugin made, and of calls."""
    query = f"select *, (select count(*) from all_calls) from ({OF_KIND[kind][1]}) as of(a, b)"
    ((number, number_again, num_calls),) = sql_values(folder / kind, query)
    assert number == number_again > 0
    return number, num_calls


def run(folder: Path, kind: str, *more: str) -> tuple[int, int]:
    """Run the command in the folder; what was made."""
    command = [sys.executable, "-m", "gistmill", "run", *words(kind, *more)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    succeeded(subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True))
    return made(folder, kind)


def test_each_kind_in_a_notebook(folder: Path) -> None:
    lines = [f"gistmill.run(*{words(kind, 'cluster=inline')}).exit_code" for kind in KINDS]
    cells = [new_code_cell(line) for line in ("import gistmill", *lines)]  # type: ignore[no-untyped-call]
    outputs = execute(new_notebook(cells=cells), folder)  # type: ignore[no-untyped-call]
    results = [cell[-1].data["text/plain"] for cell in outputs.values() if cell]
    assert results == ["0"] * len(KINDS)
    for kind in KINDS:
        first = made(folder, kind)
        assert run(folder, kind, "cluster=inline") == first


def test_each_kind_on_another_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head of this Ray has no CPU for workers; another node has two."""
    monkeypatch.setattr(ray._private.utils, "set_sigterm_handler", lambda handler: None)
    ray.shutdown()  # of the tests before
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        cluster.add_node(num_cpus=2)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        joined = ("cluster=ray", "cluster.address=auto")
        for kind in KINDS:
            first = run(folder, kind, *joined)
            assert run(folder, kind, *joined) == first
    finally:
        cluster.shutdown()
