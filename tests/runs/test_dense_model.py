"""Dense retrieval with the real MiniLM, by the real command: recall on eight meetings, and its
rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.faults.scripted_run import last_line
from tests.support.command import QMSUM, gistmill, sql, sql_values, succeed
from tests.support.engines.embedding import minilm, model_folder

pytestmark = [pytest.mark.dense, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run over the meetings."""
    folder = tmp_path_factory.mktemp("dense") / "warehouse"
    succeed(
        "run", "corpus=qmsum", f"corpus.path={QMSUM}", "memory=uniform", "memory.words=430",
        "methods=dense(over=pages,top_k=1|3|6),random_pages(top_k=3),oracle_pages(top_k=3)",
        "rater=none", f"embedder.model={minilm()}", f"warehouse={folder}", "run=qmsum",
    )  # fmt: skip
    return folder


FLOORS = {1: 15, 3: 35, 6: 50}


def test_evidence_recall(warehouse: Path) -> None:
    """As by the stored vectors and questions embedded here. Pages whose nearness differs by less
    than we round to may change places: one question in hundreds, and one of 51 is at most 1.96."""
    from sentence_transformers import SentenceTransformer

    asked = sql(warehouse, "from questions where len(evidence) > 0 order by question_id")
    pages = sql(warehouse, "select * exclude text from pages order by document_id, page_index")
    chunks = sql(warehouse, "from embeddings order by document_id, page_index, chunk_index")
    model = SentenceTransformer(str(minilm()), device="cpu")
    questions = np.asarray(model.encode([question["question"] for question in asked]))
    questions = questions / np.linalg.norm(questions, axis=1, keepdims=True)
    shares: dict[int, list[float]] = {k: [] for k in FLOORS}
    for question, vector in zip(asked, questions, strict=True):
        near: dict[int, float] = {}
        for chunk in (c for c in chunks if c["document_id"] == question["document_id"]):
            dot = float(np.dot(chunk["embedding"], vector))
            near[chunk["page_index"]] = max(dot, near.get(chunk["page_index"], -1.0))
        best = sorted(near, key=lambda page: -near[page])
        spans = [page for page in pages if page["document_id"] == question["document_id"]]
        gold = {c for s in question["evidence"] for c in range(s["start_char"], s["end_char"])}
        for k, of_questions in shares.items():
            read = [spans[page] for page in best[:k]]
            seen = {c for page in read for c in range(page["start_char"], page["end_char"])}
            of_questions.append(100 * len(gold & seen) / len(gold))
    assert len(asked) == 51
    report = json.loads(succeed("report", f"warehouse={warehouse}", "--json"))
    means = {row["method"]: row["means"] for row in report["rows"]}
    for k, least in FLOORS.items():
        recall = means[f"dense(over=pages,top_k={k})"]["evidence_recall"]["mean"]
        assert recall >= least
        assert recall == pytest.approx(float(np.mean(shares[k])), abs=2)


def test_embedding_is_a_step_of_documents_that_costs_no_calls(warehouse: Path) -> None:
    steps = json.loads(succeed("status", f"warehouse={warehouse}", "--json"))["steps"]
    (embed,) = [step for step in steps if step["stage"] == "embed"]
    assert (embed["inputs"], embed["ok"], embed["calls"], embed["method"]) == (8, 8, 0, None)
    query = """select min(len(embedding)), max(len(embedding)), count(*),
        max(abs(list_inner_product(embedding, embedding) - 1)) from embeddings"""
    ((least, most, number, most_off),) = sql_values(warehouse, query)
    assert (least, most) == (384, 384) and most_off < 1e-5
    assert number > 720  # 73,617 words
    assert not (warehouse / "tables" / "calls" / embed["step_id"]).exists()


def test_no_vector_is_printed(warehouse: Path) -> None:
    (question,) = sql(warehouse, "select question_id from questions order by all limit 1")
    words = ("trace", question["question_id"], f"warehouse={warehouse}")
    shown = succeed(*words)
    assert "dense(over=pages,top_k=1)" in shown and "embedding" not in shown
    whole = json.loads(succeed(*words, "--json"))
    vectors = [row for own in whole["memories"].values() for row in own.get("embeddings", ())]
    assert vectors and all("embedding" not in row and "end_char" in row for row in vectors)


@pytest.mark.parametrize("wrong", ["model", "device"])
def test_a_model_that_cannot_be_loaded_ends_the_run_in_one_line(tmp_path: Path, wrong: str) -> None:
    folder = model_folder(tmp_path / "model") if wrong == "model" else minilm()
    device = "cpu" if wrong == "model" else "abacus"
    here = "cluster=local"  # this process has embedded these texts
    words = (here, f"embedder.model={folder}", f"embedder.device={device}")
    demo = ("corpus=demo", "memory=uniform", "rater=none", "methods=dense")
    done = gistmill("run", *demo, *words, f"warehouse={tmp_path / 'w'}")
    last = f"embedder.model={folder} cannot be loaded on embedder.device={device} ("
    assert last_line(done, code=1).startswith(f"gistmill: {last}")
