"""Metrics of retrieval of real runs: against a loop over the rows, in the docs and the report."""

import json
import re
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.support.command import DATA, QMSUM, sql, succeed
from tests.support.docs.pages import page
from tests.support.texts.loading import loaded

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


def naive(order: list[int], gold: set[int], k: int) -> dict[str, float]:
    """Of pages, each once in the ranking: as the papers define them."""
    hits = [page in gold for page in order[:k]]
    ideal = range(1, min(k, len(gold)) + 1)
    published = [1.0, *(1 / log2(rank) for rank in range(2, k + 1))]
    return {
        "recall_any": 100.0 * any(hits),
        "recall_all": 100.0 * (gold <= set(order[:k])),
        "ndcg": 100 * sum(hit / log2(rank + 1) for rank, hit in enumerate(hits, 1))
        / sum(1 / log2(rank + 1) for rank in ideal),
        "ndcg_published": 100 * sum(map(float.__mul__, map(float, hits), published))
        / sum(published[: len(ideal)]),
    }  # fmt: skip


def test_meetings_against_a_loop(warehouse: Path) -> None:
    def read(table: str) -> list[dict[str, Any]]:
        return sql(warehouse, f"from {table}", "run=qmsum")

    pages = read("pages")
    gold: dict[str, set[int]] = {}
    for question in read("questions"):
        spans = [(span["start_char"], span["end_char"]) for span in question["evidence"]]
        gold[question["question_id"]] = {
            page["page_index"]
            for page in pages
            if page["document_id"] == question["document_id"]
            and any(s < page["end_char"] and page["start_char"] < e for s, e in spans)
        }
    orders = {
        (row["method"], row["question_id"]): [page["page_index"] for page in row["ranked"]]
        for row in read("lookups")
    }
    found = read("retrieval")
    assert len(found) == len(orders) * len(KS) and len(orders) > 30
    for row in found:
        wanted = gold[row["question_id"]]
        order = orders[row["method"], row["question_id"]]
        assert (row["left_out"] is None) == bool(wanted)
        expected = naive(order, wanted, row["k"]) if wanted else dict.fromkeys(METRICS)
        assert {name: row[name] for name in METRICS} == pytest.approx(expected), row


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


def test_which_questions_have_evidence_of_the_user(tmp_path: Path) -> None:
    def turn(role: str, content: str, marked: bool) -> dict[str, Any]:
        return {"role": role, "content": content, "has_answer": marked}

    def history(name: str, of_user: bool, of_assistant: bool) -> dict[str, Any]:
        turns = [turn("user", "We left.", of_user), turn("assistant", "user: no", of_assistant)]
        return {"question_id": name, "question": "When?", "question_type": "multi-session",
                "answer": "noon", "question_date": "2023/06/01 (Thu) 10:00",
                "haystack_session_ids": ["answer_1"], "haystack_sessions": [turns],
                "haystack_dates": ["2023/05/30 (Tue) 21:48"],
                "answer_session_ids": ["answer_1"]}  # fmt: skip

    path = tmp_path / "longmemeval_s.json"
    kinds = {"u": (True, False), "a": (False, True), "both": (True, True), "all": (False, False)}
    path.write_text(json.dumps([history(name, *marks) for name, marks in kinds.items()]))
    found = {
        item.document.document_id: [
            item.document.text[start:end]
            for start, end in json.loads(item.questions[0].metadata)["user_evidence"]
        ]
        for item in loaded(path, "longmemeval")
    }
    said = ["user: We left."]
    assert found == {"u": said, "a": [], "both": said, "all": said}
