"""Dense look-up: ranking by hand-made vectors, and what names, needs and shares embeddings."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from jobs.graph.resolved_run import read_run, run_manifest
from jobs.run.stored_run import merge_with_stored_run
from pipeline.core.errors import UsageError
from pipeline.store.runs.run_folder import RunFolder
from stages.index.search_index import EmbedGists, EmbedPages
from stages.retrieve.look_up import Dense, nearest
from stages.tables.lookups import RankedPage
from stages.tables.pages import Embedding
from tests.support.command import refused
from tests.support.engines.embedding import counts, model_folder
from tests.support.reading import adding, book, document, looked_up, never, question, run

Vector = tuple[float, ...]


def rows(*pages: tuple[Vector, ...]) -> list[Embedding]:
    """A page's chunks each; a page of none has the row that says so."""
    return [
        Embedding.about(document("x"), page_index=page, chunk_index=n, embedding=vector)
        for page, chunks in enumerate(pages)
        for n, vector in enumerate(chunks or (None,))
    ]


SAME, NEARLY = ((0.6, 0.8),), ((0.6, 0.8000001),)  # what another batch makes of the same text
THREE = (SAME, ((0.0, 1.0), (0.8, 0.6)), ((-1.0, 0.0),))


@pytest.mark.parametrize(
    ("pages", "vector", "ranked"),  # page and score, which is the dot product
    [
        (THREE, (0.0, 1.0), [(1, 1.0), (0, 0.8), (2, 0.0)]),  # page 1: the better of 1 and 0.6
        (THREE, (1.0, 0.0), [(1, 0.8), (0, 0.6), (2, -1.0)]),
        (THREE, (-1.0, 0.0), [(2, 1.0), (1, 0.0), (0, -0.6)]),
        ((SAME, ((1.0, 0.0),), SAME, SAME), (0.0, 1.0), [(0, 0.8), (2, 0.8), (3, 0.8), (1, 0.0)]),
        ((SAME, NEARLY), (0.0, 1.0), [(0, 0.8), (1, 0.8)]),
        (((), ((-1.0, 0.0),), ()), (1.0, 0.0), [(1, -1.0), (0, None), (2, None)]),
        (((), ()), (1.0, 0.0), [(0, None), (1, None)]),
        ((), (1.0, 0.0), []),
    ],
)
def test_pages_are_ranked_by_their_best_chunk(
    pages: tuple[tuple[Vector, ...], ...], vector: Vector, ranked: list[tuple[int, float | None]]
) -> None:
    """Ties go to the lower page, and a page without a vector comes last."""
    expected = [RankedPage(page, score) for page, score in ranked]
    assert nearest(rows(*pages), np.array([vector], dtype=np.float32)) == [expected]


PAGES = ["The bell rang. ", "A candle burned and a candle fell. ", "Bell and candle. ", "Smoke. "]
EMBEDDER = counts("bell", "candle", "smoke", chunk_words=4)


@pytest.mark.parametrize(
    ("over", "gists", "used"),
    [("pages", [], (1, 2)), ("gists", ["candle", "bell", "smoke", "candle smoke"], (0, 3))],
)
def test_the_nearest_pages_are_looked_up(
    over: Literal["pages", "gists"], gists: list[str], used: tuple[int, ...]
) -> None:
    # Of the embedder's words page 1 says candle alone, page 2 another as well; gists 0 and 3 too.
    kind = {"pages": EmbedPages, "gists": EmbedGists}[over]
    whole = book([page.replace(".", " .") for page in PAGES], gists)
    embeddings, _ = run(kind(embedder=EMBEDDER), whole, never())
    questions = question("a", "Which candle ?"), question("b", "smoke or smoke")
    book_rows = adding(replace(whole, questions=questions), {Embedding: embeddings})
    lookups, calls = run(Dense(top_k=2, embedder=EMBEDDER), book_rows, never())
    assert calls == ()
    assert replace(lookups[0], ranked=()) == looked_up(*used, question_id="a")
    assert [len(row.ranked) for row in lookups] == [4, 4]
    assert lookups[1].used[0] == {"pages": 3, "gists": 2}[over]
    every, _ = run(Dense(top_k=None, embedder=EMBEDDER), book_rows, never())
    assert [sorted(row.used) for row in every] == [[0, 1, 2, 3]] * 2
    assert every[0].used[:2] == tuple(page.page_index for page in lookups[0].ranked[:2]) == used


def embedded(folder: Path, methods: str, *words: str) -> list[tuple[str, str]]:
    """The id of each step that embeds and what it embeds."""
    steps = read_run([f"methods={methods}", f"embedder.model={folder}", *words]).steps
    assert len({step.id for step in steps}) == len(steps)
    return [(step.id, step.settings["kind"]) for step in steps if step.name == "embed"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's, as where sentence-transformers is installed; nothing here loads it."""
    monkeypatch.setattr("pipeline.engines.embedder.find_spec", lambda name: name)
    return model_folder(tmp_path / "model")


def test_methods_share_the_embeddings_of_the_same_texts(folder: Path) -> None:
    assert embedded(folder, "bm25,gist_only") == []
    (of_pages,) = embedded(folder, "dense(top_k=1..6),gist_dense")
    of_both = embedded(folder, "dense(over=gists|pages,top_k=1|2),gist_dense(top_k=2)")
    assert [over for _, over in of_both] == ["gists", "pages"]
    assert of_both[1] == of_pages


def test_the_models_content_names_the_step_and_not_its_place(folder: Path, tmp_path: Path) -> None:
    before = embedded(folder, "dense")
    moved = shutil.copytree(folder, tmp_path / "elsewhere" / "minilm")
    assert embedded(moved, "dense", "embedder.device=cuda", "embedder.batch_size=8") == before
    assert embedded(folder, "dense", "embedder.chunk_words=50") != before
    assert embedded(folder, "dense", "embedder.chunk_words=null") != before
    (moved / "1_Pooling" / "config.json").write_text("[]")  # of the same size
    assert embedded(moved, "dense") != before


REFUSED = [
    ((), "embedder.model is not set, and dense(over=pages,top_k=3) needs it"),
    (("embedder.model={}/gone",), "embedder.model={}/gone: no such folder"),
    (("embedder.model={}",), "embedder.model={}: no modules.json and no config.json there"),
    (("embedder.model={}/model",), "embedder.model={}/model: sentence-transformers is not install"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "line"), REFUSED)
def test_a_method_that_cannot_have_vectors_ends_in_one_line(
    words: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as where it is not installed
    model_folder(tmp_path / "model")
    warehouse = tmp_path / "warehouse"
    given = [word.format(tmp_path) for word in words]
    said = refused("run", "methods=bm25,dense", f"warehouse={warehouse}", *given)
    assert said.startswith(line.format(tmp_path))
    assert not warehouse.exists()


def test_a_named_run_grows_by_its_first_embedder_and_keeps_to_it(
    folder: Path, tmp_path: Path
) -> None:
    other = model_folder(tmp_path / "other")
    (other / "config.json").write_text("{}")
    stored = RunFolder(tmp_path / "warehouse", "night")

    def night(*words: Any) -> list[str]:
        made = merge_with_stored_run(read_run(["run=night", *words]), stored)
        stored.start(run_manifest(made), {}, has_work=True)
        return [method.name for method in made.methods]

    night("methods=bm25")
    dense = night("methods=dense", f"embedder.model={folder}")
    assert dense == ["bm25(top_k=3)", "dense(over=pages,top_k=3)"]
    assert night("methods=bm25", f"embedder.model={folder}") == dense
    for words in ([f"embedder.model={other}"], []):
        with pytest.raises(UsageError, match=r"was started with other settings: embedder\b"):
            night("methods=bm25", *words)
