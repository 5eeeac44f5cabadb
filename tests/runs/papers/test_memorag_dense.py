"""MemoRAG with the real MiniLM: which chunks each query finds, from the stored vectors by hand."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.test_dense_model import encoded
from tests.support.command import QMSUM, sql, succeed
from tests.support.engines.embedding import minilm

pytestmark = [pytest.mark.dense, pytest.mark.timeout(900), pytest.mark.slow]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clues")
    succeed(
        "run", "corpus=qmsum", f"corpus.path={QMSUM}", "limit=3", "memory=tokens", "rater=none",
        "methods=memorag(memory=gist_memory),hyde,rq_rag,rag,random_pages(top_k=3)", "run=r",
        f"embedder.model={minilm()}", "embedder.chunk_words=null", f"warehouse={folder}",
    )  # fmt: skip
    return folder


def test_every_query_finds_its_nearest_chunks(warehouse: Path) -> None:
    found = sql(
        warehouse,
        """select l.document_id, requested, text from lookups l
        join queries using (method, document_id, question_id, query_index)""",
    )
    asked = encoded([row["text"] for row in found])
    assert len(found) > 100
    for row, query in zip(found, asked, strict=True):
        near = chunks(warehouse, row["document_id"]) @ query
        taken = near[row["requested"]]
        assert len(taken) == 3
        assert np.all(np.sort(near)[-3:] <= np.sort(taken) + 1e-4), row["text"]


@cache
def chunks(warehouse: Path, document_id: str) -> Any:
    """The stored vectors of a document, by page."""
    of = f"from embeddings where document_id = '{document_id}' order by page_index"
    return np.array([row["embedding"] for row in sql(warehouse, f"select embedding {of}")])


def test_chunks_are_embedded_once_for_all_methods(warehouse: Path) -> None:
    (counts,) = sql(
        warehouse,
        """select (select count(*) from pages) as chunks, (select count(*) from embeddings) as n,
          (select count(distinct step_id) from embeddings) as steps""",
    )
    assert counts["chunks"] == counts["n"] > 60 and counts["steps"] == 1


def test_any_query_finds_more_than_chance(warehouse: Path) -> None:
    means = sql(
        warehouse,
        """select split_part(method, '(', 1) as method, avg(value) as recall from measures
        where measure = 'evidence_recall' group by all""",
    )
    recall = {row["method"]: row["recall"] for row in means}
    assert min(recall["rag"], recall["hyde"], recall["rq_rag"]) > recall["random_pages"]


def test_clues_find_more_than_the_question(warehouse: Path) -> None:
    """The question is a query of both, so what it finds is read by both."""
    read = sql(
        warehouse,
        """select m.page_indexes as clues, r.page_indexes as question
        from answers m join answers r using (question_id)
        where m.method like 'memorag%' and r.method like 'rag(%'""",
    )
    assert all(set(row["question"]) <= set(row["clues"]) for row in read)
    assert sum(len(row["clues"]) > 3 for row in read) > len(read) / 2
