"""Pages found by all queries of a question, against a naive reader."""

import re
from collections import Counter
from dataclasses import replace
from math import log
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.rows import UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from stages.prompts.passages import Passage
from stages.read.answer_kinds import AnswerFromChunks
from stages.retrieve.look_up import used_pages
from stages.retrieve.search import SearchByBM25, SearchByVectors
from stages.tables.keys import Embedding
from stages.tables.lookups import Lookup, Query
from tests.support.reading import adding, always, book, looked_up, never, question, run

WORDS = ("bell", "rope", "tower", "stair", "monk", "oil", "candle", "priest")


def queries(*texts: str | None, question_id: str = "q", **more: Any) -> list[Query]:
    return [
        Query(document_id="d", question_id=question_id, query_index=n, kind="span", text=text,
              **more)
        for n, text in enumerate(texts)
    ]  # fmt: skip


def bm25_plus(pages: list[str], query: str) -> list[tuple[int, float]]:
    """Pages and scores, best first, by BM25+ (Lv and Zhai 2011) with k1 1.5, b 0.75, delta 1,
    written here; words are their own stems. A page without a word of the query scores nothing."""
    split = [re.findall("[a-z]+", page.lower()) for page in pages]
    mean = sum(map(len, split)) / len(split)
    scores = []
    for words in split:
        counts, score = Counter(words), 0.0
        for word in query.split():
            num = sum(word in other for other in split)
            if num and counts[word]:
                long = 1.5 * (0.25 + 0.75 * len(words) / mean)
                score += log((len(split) + 1) / num) * (2.5 * counts[word] / (counts[word] + long))
        scores.append(round(score, 9))
    order = sorted(range(len(pages)), key=lambda page: (-scores[page], page))
    return [(page, scores[page]) for page in order]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=9),
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_the_union_of_all_queries_is_read_in_order(
    pages: list[list[str]], asked: list[list[str]], top_k: int
) -> None:
    texts, wanted = [" ".join(words) + ". " for words in pages], [" ".join(q) for q in asked]
    stage = SearchByBM25(top_k=top_k, bm25="plus_on_stems", mean=False)
    rows = adding(book(texts, questions=[question()]), {Query: queries(*wanted)})
    made, _ = run(stage, rows, never())
    rankings = [[(page, score) for page, score in bm25_plus(texts, query) if score]
                for query in wanted]  # fmt: skip
    best = [[page for page, _ in own[:top_k]] for own in rankings]
    assert [list(turn.requested) for turn in made] == best
    assert [turn.query_index for turn in made] == list(range(len(wanted)))
    for turn, own in zip(made, rankings, strict=True):
        assert [page.page_index for page in turn.ranked] == [page for page, _ in own]
        assert [page.score for page in turn.ranked] == pytest.approx([score for _, score in own])
    seen: list[int] = []
    for turn, found in zip(made, best, strict=True):
        assert list(turn.used or ()) == [page for page in found if page not in seen]
        assert [d.page_index for d in turn.dropped] == [page for page in found if page in seen]
        seen += turn.used or ()
    union = {page for found in best for page in found}
    assert sorted(used_pages(adding(rows, {Lookup: made}), question())) == sorted(union)
    answered = read(adding(rows, {Lookup: made}))
    assert list(answered.page_indexes) == sorted(union)


def read(rows: UnitRows, engine: Any = None) -> Any:
    stage = AnswerFromChunks(first_page=0, answer_words=9, answer_page_tags=False)
    (answer,), _ = run(stage, rows, engine or always("Nobody."))
    return answer


class Axes(EmbedderSettings):
    """A vector per text: how often each word is in it."""

    async def embed(self, texts: Any, kind: Kind) -> Vectors:
        found = np.array([[text.split().count(word) for word in WORDS] for text in texts], "f")
        return found.reshape(len(texts), len(WORDS))


def test_vectors_of_all_queries_find_their_pages() -> None:
    """Pages are the axes; the second question has no query left, the third no reply."""
    axes = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)
    stage = SearchByVectors(top_k=2, embedder=axes, mean=False)
    vectors = [
        Embedding(document_id="d", page_index=n, chunk_index=0, start_char=0, end_char=0,
                  embedding=tuple(float(n == axis) for axis in range(len(WORDS))))
        for n in range(3)
    ]  # fmt: skip
    asked = [question(name) for name in "qrs"]
    found = [
        *queries("tower bell bell", "rope rope tower"),
        *queries("bell", question_id="r", dropped="short"),
        *queries(None, "bell", question_id="s", problem="timeout"),
    ]
    rows = adding(book(["a ", "b ", "c"], questions=asked), {Query: found, Embedding: vectors})
    made, _ = run(stage, rows, never())
    turns = [(t.question_id, t.turn, t.query_index, t.requested, t.used, t.problem) for t in made]
    assert turns == [
        ("q", 0, 0, (0, 2), (0, 2), None),
        ("q", 1, 1, (1, 2), (1,), None),
        ("r", 0, None, (), (), None),
        ("s", 0, None, (), None, "upstream"),
    ]
    assert [tuple(page.page_index for page in turn.ranked) for turn in made] == [
        (0, 2), (1, 2), (), (),
    ], "what shares nothing with a query is not found"  # fmt: skip
    assert made[-1].detail == "queries: timeout, queries: timeout"


class Kinds(Axes):
    """What each text was embedded as is remembered."""

    seen: ClassVar[list[tuple[str, str]]] = []

    async def embed(self, texts: Any, kind: Kind) -> Vectors:
        self.seen.extend((text, kind) for text in texts)
        return await super().embed(texts, kind)


def test_the_mean_of_all_vectors_finds_pages_once() -> None:
    """HyDE: three passages and the question; the mean is nearest to the rope, no single one is.
    A passage is embedded as a page is. The second question has no query left."""
    kinds = Kinds(model=None, chunk_words=None, device="cpu", batch_size=1)
    vectors = [
        Embedding(document_id="d", page_index=n, chunk_index=0, start_char=0, end_char=0,
                  embedding=tuple(float(n == axis) for axis in range(len(WORDS))))
        for n in range(4)
    ]  # fmt: skip
    texts = ("bell bell rope", "tower tower rope", "stair stair rope")
    passages = [replace(row, kind="hypothetical") for row in queries(*texts)]
    own = Query(document_id="d", question_id="q", query_index=3, kind="question", text="rope")
    lost = queries("bell", question_id="r", dropped="short")
    asked = [question("r"), question("q")]
    rows = book(["a ", "b ", "c ", "d"], questions=asked)
    rows = adding(rows, {Query: [*lost, *passages, own], Embedding: vectors})
    made, _ = run(SearchByVectors(top_k=1, embedder=kinds, mean=True), rows, never())
    assert [(t.question_id, t.turn, t.query_index, t.used) for t in made] == [
        ("r", 0, None, ()), ("q", 0, None, (1,)),
    ]  # fmt: skip
    assert [page.score for page in made[1].ranked] == [1.0, 0.5, 0.5, 0.5]
    assert Kinds.seen == [*((text, "document") for text in texts), ("rope", "query")]
    found, _ = run(SearchByBM25(top_k=9, bm25="plus_on_stems", mean=True), rows, never())
    assert [(t.question_id, t.turn) for t in found] == [("r", 0), ("q", 0)]


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    ("kind", "text", "used"),
    [("hypothetical", "zebra quagga", ()), ("hypothetical", "zebra rope", (1, 2)),
     ("question", "zebra quagga", (0, 1))],
)  # fmt: skip
def test_a_page_that_shares_nothing_is_found_by_a_question_alone(
    mean: bool, kind: str, text: str, used: tuple[int, ...]
) -> None:
    unit = book(["The bell. ", "The rope. ", "A rope, a bell."], questions=[question()])
    asked = [replace(row, kind=kind) for row in queries(text)]
    stage = SearchByBM25(top_k=2, bm25="plus_on_stems", mean=mean)
    (turn,), _ = run(stage, adding(unit, {Query: asked}), never())
    assert turn.used == used


def test_a_draft_stands_after_the_chunks() -> None:
    rows = adding(
        book(["The bell. ", "The rope. ", "The end."], questions=[question()]),
        {Query: [*queries("bell"), *queries("The sexton did.")], Lookup: [looked_up(2, 0)]},
    )
    plain = always("Nobody.")
    assert read(rows, plain).num_context_words == 4
    assert "guess" not in plain.prompts()[0]
    drafted = always("Nobody.")
    draft = Query(document_id="d", question_id="q", query_index=1, kind="draft",
                  text="The sexton did.")  # fmt: skip
    answer = read(adding(rows, {Query: [*queries("bell"), draft]}), drafted)
    (request,) = drafted.requests
    assert request.fields is not None
    shown: tuple[Passage, ...] = request.fields.passages  # type: ignore[attr-defined]
    assert [passage.text for passage in shown] == [
        "The bell.", "The end.", "(A guess, made from memory: The sexton did.)",
    ]  # fmt: skip
    assert (answer.page_indexes, answer.num_context_words) == ((0, 2), 7)


@pytest.mark.parametrize("problem", ["timeout", "context_overflow"])
def test_without_a_reply_there_is_no_answer(problem: Any) -> None:
    lost = [*queries("bell"), *queries(None, problem=problem)]
    rows = adding(book(["a ", "b"], questions=[question()]), {Query: lost})
    (turn,), _ = run(SearchByBM25(top_k=1, bm25="plus_on_stems", mean=False), rows, never())
    assert (turn.used, turn.problem) == (None, "upstream")
    answer = read(adding(rows, {Lookup: [turn]}), never())
    assert answer.problem == "upstream" and problem in answer.detail
