"""Embeddings: every page or gist in chunks, each with its vector, whatever the page holds."""

import asyncio
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import Problem
from pipeline.core.rows import UnitRows
from pipeline.engines.embedder import EmbedderSettings
from stages.index.search_index import EmbedGists, EmbedPages, chunks
from stages.retrieve.look_up import Dense
from stages.tables.keys import Embedding
from tests.support.engines.embedding import counts
from tests.support.reading import adding, book, given_to, never, run

PAGES = ("The bell rang and rang. ", "One candle\n\nburned. ", "Bell, book and candle lay there ")
EMBEDDER = counts("bell", "rang", "candle", chunk_words=3)
STAGE = EmbedPages(embedder=EMBEDDER)


def cut(stage: EmbedPages | EmbedGists, rows: UnitRows) -> list[tuple[int, int, str]]:
    """What was embedded: page, chunk, text."""
    made, calls = run(stage, rows, never())
    assert calls == ()
    texts = stage.texts(rows)
    return [
        (r.page_index, r.chunk_index, texts[r.page_index][r.start_char : r.end_char]) for r in made
    ]


def test_every_page_is_cut_into_chunks_in_page_order() -> None:
    assert cut(STAGE, book([*PAGES, " \n"])) == [
        (0, 0, "The bell rang"),
        (0, 1, "and rang."),
        (1, 0, "One candle\n\nburned."),
        (2, 0, "Bell, book and"),
        (2, 1, "candle lay there"),
        (3, 0, ""),
    ]


@pytest.mark.parametrize(
    ("chunk_words", "vectors"),
    [
        (3, [(2**-0.5, 2**-0.5, 0.0), (2 / 5**0.5, 1 / 5**0.5, 0.0), (0.0, 0.0, 1.0)]),
        (None, [(3 / 14**0.5, 2 / 14**0.5, 1 / 14**0.5)]),  # a page may have one vector
    ],
)
def test_a_chunk_has_the_vector_of_its_own_words(
    chunk_words: int | None, vectors: list[tuple[float, ...]]
) -> None:
    stage = EmbedPages(embedder=counts("bell", "rang", "candle", chunk_words=chunk_words))
    made, _ = run(stage, book(["bell rang x bell bell rang candle "]), never())
    assert [row.embedding for row in made] == [pytest.approx(own, abs=1e-6) for own in vectors]
    assert [row.problem for row in made] == [None] * len(vectors)


def test_the_kind_gists_embeds_the_gists() -> None:
    stage = EmbedGists(embedder=EMBEDDER)
    rows = book(PAGES, ["It rang.", "A candle burned low then.", "Bell"])
    assert cut(stage, rows) == [
        (0, 0, "It rang."), (1, 0, "A candle burned"), (1, 1, "low then."), (2, 0, "Bell"),
    ]  # fmt: skip


@settings(deadline=None)
@given(st.text(st.sampled_from("ab ,.\n\t\u3000中\u00a0é"), max_size=80), st.integers(1, 7))
def test_chunks_hold_all_words_in_order_and_no_more_than_asked(text: str, words: int) -> None:
    found = chunks(text, words)
    parts = [text[span.start_char : span.end_char] for span in found]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(a.end_char <= b.start_char for a, b in pairwise(found))
    # A Chinese character is a word, and so is what stands between two of them or blanks.
    sizes = [len(re.sub("中[^\\w\\s]*", " x ", part).split()) for part in parts]
    assert all(size == words for size in sizes[:-1])
    assert all(0 < size <= words for size in sizes)


def test_what_embeddings_lack_is_reported_for_every_question() -> None:
    look_up = Dense(top_k=1, embedder=EMBEDDER)

    def lack(problem: Problem) -> str | None:
        rows = book(PAGES)
        return look_up.why_unusable(
            given_to(look_up, adding(rows, {Embedding: STAGE.failed(rows, problem, None)}))
        )

    assert lack("unit_failed") == "embed of page 0: unit_failed"
    assert lack("empty_input") is None, "a page without words is no reason to skip the others"


class Counted(EmbedderSettings):
    """Notes every text that the model would have to encode."""

    def _encode(self, texts: list[str], kind: Any) -> Any:
        ENCODED.extend((kind, text) for text in texts)
        return np.array([[float(len(text)), 1.0] for text in texts], dtype=np.float32)


ENCODED: list[tuple[str, str]] = []


def test_a_text_is_encoded_once_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories share sessions: of the second only what is new costs anything."""
    monkeypatch.setattr("pipeline.engines.embedder._VECTORS", {})
    monkeypatch.setattr("pipeline.engines.embedder._MOST_VECTORS", 3)
    ENCODED.clear()
    model = Counted(model="m", chunk_words=None, device="cpu", batch_size=1)

    def vectors(*texts: str, kind: Any = "document") -> list[float]:
        return [float(one[0]) for one in asyncio.run(model.embed(texts, kind))]

    assert vectors("a", "bb", "a") == [1, 2, 1]
    assert vectors("bb", "ccc") == [2, 3]
    assert vectors("bb", kind="query") == [2]
    assert ENCODED == [
        ("document", "a"), ("document", "bb"), ("document", "ccc"), ("query", "bb"),
    ]  # fmt: skip
    assert vectors("a") == [1], "forgotten, as there is room for three"
    assert ENCODED[4:] == [("document", "a")]
