"""The extractive engine on all of QMSum val, by the real command: floors and paper figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import NEEDS_WHOLE, WHOLE_QMSUM, succeed

pytestmark = NEEDS_WHOLE


def report(warehouse: Path, *words: str, experiment: str = "qmsum") -> dict[str, Any]:
    """The means of a run over QMSum val with uniform pages, by method and measure."""
    out = succeed(
        "run", f"experiment={experiment}", f"corpus.path={WHOLE_QMSUM}", f"warehouse={warehouse}",
        "memory=uniform", "rater=none", *words, "--json",
    )  # fmt: skip
    made: dict[str, Any] = json.loads(out)["report"]
    means = {
        row["method"]: {name: mean["mean"] for name, mean in row["means"].items()}
        for row in made["rows"]
    }
    return {**means, "memory": made["memory"]}


FLOORS = {  # of evidence recall
    "bm25(top_k=1)": 20, "bm25(top_k=3)": 41, "bm25(top_k=6)": 57, "readagent_p(max_pages=1)": 17,
    "readagent_p(max_pages=3)": 33, "readagent_p(max_pages=6)": 48,
}  # fmt: skip


def test_recall_answers_and_gists(tmp_path: Path) -> None:
    methods = "methods=bm25(top_k=1|3|6),readagent_p(max_pages=1|3|6),random_pages(top_k=3)"
    means = report(tmp_path, "memory.words=430", methods, "run=words430")
    recall = {method: of["evidence_recall"] for method, of in means.items() if method != "memory"}
    assert {method: recall[method] for method in FLOORS if recall[method] < FLOORS[method]} == {}
    assert recall["bm25(top_k=3)"] >= recall["random_pages(top_k=3)"] + 20
    answers = means["bm25(top_k=3)"]
    assert 60 <= answers["length"] <= 80
    assert answers["rouge1_stem"] >= 22
    assert answers["rouge2_stem"] >= 4.2
    assert answers["rougeL_stem"] >= 13.5
    assert 80 <= means["memory"]["gist_compression"] <= 88


PAPER = dict(zip(range(1, 7), (95.69, 91.48, 86.93, 82.55, 78.13, 73.97), strict=True))
TRUNCATED = {
    f"truncated(keep={keep},num_words=6000)": pytest.approx(rate, abs=0.005)
    for keep, rate in (("first", 32.59), ("last", 32.38))
}


@pytest.mark.parametrize(
    ("experiment", "within", "truncated"),
    [("readagent_table3", 0.33, TRUNCATED), ("qmsum", 0.25, {})],
    ids=["okapi_on_words", "plus_on_stems"],
)
def test_compression_is_the_papers(
    tmp_path: Path, experiment: str, within: float, truncated: dict[str, float]
) -> None:
    """ReadAgent table 3, where no model has a part: BM25's pages where these have 360 words, as the
    paper's must have had about, and truncated texts as printed."""
    methods = ",".join(["bm25(top_k=1..6)", *truncated])
    words = (f"methods={methods}", "memory.words=360", f"run={experiment}")
    found = report(tmp_path, *words, experiment=experiment)
    ranked = {f"bm25(top_k={n})": pytest.approx(rate, abs=within) for n, rate in PAPER.items()}
    for method, rate in {**ranked, **truncated}.items():
        assert found[method]["compression_rate"] == rate
