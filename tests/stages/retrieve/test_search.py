"""Pages found by all queries of a question, worked by hand."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from pipeline.core.rows import UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from stages.prompts.passages import Passage
from stages.read.answer_kinds import AnswerFromChunks
from stages.retrieve.search import SearchByBM25, SearchByVectors
from stages.tables.keys import Embedding
from stages.tables.lookups import Dropped, Lookup, Query
from tests.support.reading import adding, always, book, looked_up, never, question, run

WORDS = ("bell", "rope", "tower", "stair", "monk", "oil", "candle", "priest")


def queries(*texts: str | None, question_id: str = "q", **more: Any) -> list[Query]:
    return [
        Query(document_id="d", question_id=question_id, query_index=n, kind="span", text=text,
              **more)
        for n, text in enumerate(texts)
    ]  # fmt: skip


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
    assert made[1].dropped == (Dropped(2, "duplicate"),)


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
