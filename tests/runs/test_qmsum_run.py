"""The extractive engine on all of QMSum val, by the real command: floors and paper figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import NEEDS_WHOLE, WHOLE_QMSUM, sql, succeed

pytestmark = NEEDS_WHOLE


def report(warehouse: Path, *words: str) -> dict[str, Any]:
    """The means of a run over QMSum val with uniform pages, by method and measure."""
    out = succeed(
        "run", "experiment=qmsum", f"corpus.path={WHOLE_QMSUM}", f"warehouse={warehouse}",
        "memory=uniform", "rater=none", *words, "--json",
    )  # fmt: skip
    made: dict[str, Any] = json.loads(out)["report"]
    means = {
        row["method"]: {name: mean["mean"] for name, mean in row["means"].items()}
        for row in made["rows"]
    }
    return {**means, "memory": made["memory"]}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qmsum") / "warehouse"


@pytest.fixture(scope="module")
def at_430(warehouse: Path) -> dict[str, Any]:
    methods = "methods=bm25(top_k=1|3|6),readagent_p(max_pages=1|3|6)"
    return report(warehouse, "memory.words=430", methods, "run=words430")


@pytest.fixture(scope="module")
def at_360(warehouse: Path) -> dict[str, Any]:
    methods = "methods=bm25(top_k=1|3|6),random_pages(top_k=3)"
    return report(warehouse, "memory.words=360", methods, "run=words360")


@pytest.mark.parametrize(
    ("method", "floor"),
    [
        ("bm25(top_k=1)", 20),
        ("bm25(top_k=3)", 41),
        ("bm25(top_k=6)", 57),
        ("readagent_p(max_pages=1)", 17),
        ("readagent_p(max_pages=3)", 33),
        ("readagent_p(max_pages=6)", 48),
    ],
)
def test_evidence_recall(at_430: dict[str, Any], method: str, floor: float) -> None:
    assert at_430[method]["evidence_recall"] >= floor


def test_answers_and_gists(at_430: dict[str, Any]) -> None:
    answers = at_430["bm25(top_k=3)"]
    assert 60 <= answers["length"] <= 80
    assert answers["rouge1_stem"] >= 22
    assert answers["rouge2_stem"] >= 4.2
    assert answers["rougeL_stem"] >= 13.5
    assert 80 <= at_430["memory"]["gist_compression"] <= 88


def test_compression_is_the_papers(at_360: dict[str, Any]) -> None:
    """ReadAgent table 3: BM25 top-1 95.69, top-6 73.97."""
    assert abs(at_360["bm25(top_k=1)"]["compression_rate"] - 95.69) <= 1
    assert abs(at_360["bm25(top_k=6)"]["compression_rate"] - 73.97) <= 1
    random = at_360["random_pages(top_k=3)"]["evidence_recall"]
    assert at_360["bm25(top_k=3)"]["evidence_recall"] >= random + 20


def test_counts_reconcile(warehouse: Path, at_430: dict[str, Any]) -> None:
    rows = sql(warehouse, "from accounting join steps using (step_id)", "run=words430")
    assert {row["inputs"] for row in rows if row["stage"] in ("documents", "paginate")} == {35}
    assert {row["inputs"] for row in rows if row["stage"] in ("questions", "answer")} == {272}
    for row in rows:
        assert row["inputs"] == row["ok"] + row["problem"] + row["skipped"] + row["not_done"]
        assert row["inputs"] == row["ok"]


def test_a_means_sql_is_the_reports(warehouse: Path, at_430: dict[str, Any]) -> None:
    rows = sql(
        warehouse,
        "select method, avg(value) as mean from scores where metric = 'evidence_recall'"
        " group by method",
        "run=words430",
    )
    for row in rows:
        assert row["mean"] == pytest.approx(at_430[row["method"]]["evidence_recall"])
