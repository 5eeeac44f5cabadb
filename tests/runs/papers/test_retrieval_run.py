"""Metrics of retrieval of real runs: against a loop over the rows, in the docs and the report."""

import json
import re
from pathlib import Path
from statistics import fmean

import pytest

from tests.support.command import DATA, QMSUM, sql, succeed
from tests.support.docs.pages import page

pytestmark = pytest.mark.slow

HISTORIES = DATA / "longmemeval" / "longmemeval_oracle_16.json"
METRICS = ("recall_any", "recall_all", "ndcg", "ndcg_published")
KS = (1, 3, 5, 10, 30, 50)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three meetings and two histories."""
    folder = tmp_path_factory.mktemp("retrieval") / "warehouse"
    words = ("rater=none", "memory=uniform", "memory.words=200", f"warehouse={folder}")
    for corpus, path, methods in (
        ("qmsum", QMSUM, "bm25(top_k=2),random_pages(top_k=1)"),
        ("longmemeval", HISTORIES, "bm25(top_k=2),closed_book"),
    ):
        succeed("run", f"corpus={corpus}", f"corpus.path={path}", f"methods={methods}", "limit=3",
                f"run={corpus}", *words)  # fmt: skip
    return folder


def test_the_query_of_the_docs(warehouse: Path) -> None:
    text = page("docs/sql.md")
    (block,) = re.findall(r'^gistmill sql "([^"]*from retrieval[^"]*)"', text, re.MULTILINE)
    found = sql(warehouse, block, "run=qmsum")
    assert [(row["method"], row["level"], row["k"]) for row in found] == [
        (method, "page", k) for method in ("bm25(top_k=2)", "random_pages(top_k=1)") for k in KS
    ]
    rows = sql(warehouse, "from retrieval where left_out is null", "run=qmsum")
    for row in found:
        own = [r for r in rows if (r["method"], r["k"]) == (row["method"], row["k"])]
        assert row["questions"] == len(own)
        for name in METRICS:
            assert row[name] == pytest.approx(fmean(r[name] for r in own))


def test_a_family_s_metrics_are_columns(warehouse: Path) -> None:
    words = (f"warehouse={warehouse}", "--json")
    shown = {run: json.loads(succeed("report", f"run={run}", *words))
             for run in ("qmsum", "longmemeval")}  # fmt: skip
    columns = {run: [c["measure"] for c in made["columns"] if "@" in c["measure"]]
               for run, made in shown.items()}  # fmt: skip
    assert columns == {
        "qmsum": [],
        "longmemeval": [f"session_{name}@{k}" for k in (5, 10)
                        for name in ("recall_all", "ndcg_published")],
    }  # fmt: skip
    means = {row["method"]: row["means"] for row in shown["longmemeval"]["rows"]}
    assert means["bm25(top_k=2)"]["session_recall_all@5"]["n"] == 3
    assert "session_recall_all@5" not in means["closed_book"]
