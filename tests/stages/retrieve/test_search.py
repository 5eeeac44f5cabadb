"""Pages found by all queries of a question, and values found by their keys: worked by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from pipeline.core.rows import UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from stages.index.search_index import EmbedKeys
from stages.query.make_queries import MakeTimeRange
from stages.read.answer_kinds import AnswerFromChunks
from stages.retrieve.search import (
    SearchByBM25,
    SearchByVectors,
    SearchKeysByBM25,
    SearchKeysByVectors,
)
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Dropped, Lookup, Query
from tests.support.reading import adding, always, book, looked_up, never, question, run

WORDS = ("bell", "rope", "tower", "stair", "monk", "oil", "candle", "priest")


def query(text: str | None, index: int = 0, kind: str = "span", **more: Any) -> Query:
    given = {"question_id": "q", **more}
    return Query(document_id="d", query_index=index, kind=kind, text=text, **given)


class Axes(EmbedderSettings):
    """A vector per text: how often each word is in it. What was embedded is remembered."""

    seen: ClassVar[list[tuple[str, str]]] = []

    async def embed(self, texts: Any, kind: Kind) -> Vectors:
        self.seen.extend((text, kind) for text in texts)
        vectors = np.array([[text.split().count(word) for word in WORDS] for text in texts], "f")
        return vectors.reshape(len(texts), len(WORDS))


def axes() -> Axes:
    return Axes(model=None, chunk_words=None, device="cpu", batch_size=1)


def on_axes(num: int, *questions: str, found: Sequence[Query]) -> UnitRows:
    """Pages whose vectors are the axes, and the queries of the questions."""
    vectors = [
        Embedding(document_id="d", page_index=n, chunk_index=0, start_char=0, end_char=0,
                  embedding=tuple(float(n == axis) for axis in range(len(WORDS))))
        for n in range(num)
    ]  # fmt: skip
    unit = book(["a "] * num, questions=[question(name) for name in questions])
    return adding(unit, {Query: found, Embedding: vectors})


def test_vectors_of_all_queries_find_their_pages() -> None:
    """The second question has no query left, the third no reply."""
    rows = on_axes(3, "q", "r", "s", found=[
        query("tower bell bell"), query("rope rope tower", 1),
        query("bell", question_id="r", dropped="short"),
        query(None, question_id="s", problem="timeout"),
        query("bell", 1, question_id="s", problem="timeout"),
    ])  # fmt: skip
    made, _ = run(SearchByVectors(top_k=2, embedder=axes(), mean=False), rows, never())
    turns = [(t.question_id, t.turn, t.query_index, t.requested, t.used, t.problem) for t in made]
    assert turns == [
        ("q", 0, 0, (0, 2), (0, 2), None), ("q", 1, 1, (1, 2), (1,), None),
        ("r", 0, None, (), (), None), ("s", 0, None, (), None, "upstream"),
    ]  # fmt: skip
    ranked = [tuple(page.page_index for page in turn.ranked) for turn in made]
    assert ranked == [(0, 2), (1, 2), (), ()], "what shares nothing with a query is not found"
    assert made[-1].detail == "queries: timeout, queries: timeout"
    assert made[1].dropped == (Dropped(2, "duplicate"),)


def test_the_mean_of_all_vectors_finds_pages_once() -> None:
    """HyDE: three passages and the question; the mean is nearest to the rope, no single one is.
    A passage is embedded as a page is. The second question has no query left."""
    Axes.seen.clear()
    texts = ("bell bell rope", "tower tower rope", "stair stair rope")
    rows = on_axes(4, "r", "q", found=[
        query("bell", question_id="r", dropped="short"),
        *(query(text, n, "hypothetical") for n, text in enumerate(texts)),
        query("rope", 3, "question"),
    ])  # fmt: skip
    made, _ = run(SearchByVectors(top_k=1, embedder=axes(), mean=True), rows, never())
    turns = [(turn.question_id, turn.turn, turn.query_index, turn.used) for turn in made]
    assert turns == [("r", 0, None, ()), ("q", 0, None, (1,))]
    assert [page.score for page in made[1].ranked] == [1.0, 0.5, 0.5, 0.5]
    assert Axes.seen == [*((text, "document") for text in texts), ("rope", "query")]
    turns_by_bm25, _ = run(SearchByBM25(top_k=9, bm25="plus_on_stems", mean=True), rows, never())
    assert [(turn.question_id, turn.turn) for turn in turns_by_bm25] == [("r", 0), ("q", 0)]


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
    stage = SearchByBM25(top_k=2, bm25="plus_on_stems", mean=mean)
    (turn,), _ = run(stage, adding(unit, {Query: [query(text, kind=kind)]}), never())
    assert turn.used == used


@pytest.mark.parametrize(
    ("kind", "guess", "words"),
    [("span", [], 4), ("draft", ["(A guess, made from memory: The sexton did.)"], 7)],
)
def test_a_draft_stands_after_the_chunks(kind: str, guess: list[str], words: int) -> None:
    rows = adding(
        book(["The bell. ", "The rope. ", "The end."], questions=[question()]),
        {Query: [query("bell"), query("The sexton did.", 1, kind)], Lookup: [looked_up(2, 0)]},
    )
    stage = AnswerFromChunks(first_page=0, answer_words=9, answer_page_tags=False)
    engine = always("Nobody.")
    (answer,), _ = run(stage, rows, engine)
    shown: Any = engine.requests[0].fields
    assert [passage.text for passage in shown.passages] == ["The bell.", "The end.", *guess]
    assert (answer.page_indexes, answer.num_context_words) == ((0, 2), words)


ASKED = "bell rope"


@dataclass
class History:
    """A chat whose pages have these keys: page, kind, text, day."""

    keys: Sequence[tuple[int, str, str | None, str | None]]
    pages: Sequence[str] = ("a ", "b ", "c ", "d")
    expansions: Sequence[Expansion] = ()
    queries: list[Query] = field(default_factory=list)

    def rows(self) -> UnitRows:
        keys = [Key(document_id="d", page_index=page, key_index=n, kind=kind, text=text, day=day)
                for n, (page, kind, text, day) in enumerate(self.keys)]  # fmt: skip
        unit = book(self.pages, questions=[question(text=ASKED)])
        asked = [query(ASKED, kind="question"), *self.queries]
        return adding(unit, {Key: keys, Expansion: self.expansions, Query: asked})

    def found(self, by_vectors: bool = False, top_k: int | None = None, **settings: Any) -> Lookup:
        settings = {"widen_days": 0, "out_of_range": "last", "dated_by": "any", "merge": "score",
                    "top_k": top_k, **settings}  # fmt: skip
        rows: UnitRows = self.rows()
        if by_vectors:
            vectors, _ = run(EmbedKeys(embedder=axes()), rows, never())
            rows = adding(rows, {Embedding: vectors})
            (turn,), _ = run(SearchKeysByVectors(embedder=axes(), **settings), rows, never())
        else:
            (turn,), _ = run(SearchKeysByBM25(bm25="plus_on_stems", **settings), rows, never())
        assert isinstance(turn, Lookup)
        return turn


def dated(start: str | None, end: str | None, **more: Any) -> History:
    """Ranked for "bell rope" are 1, 2, 0 by their best keys; the question is about a range."""
    event = Expansion(document_id="d", page_index=1, item_index=0, kind="event", text="It rang.",
                      day="2023/05/12")  # fmt: skip
    time_range = query(None, 1, "time_range", start_date=start, end_date=end, **more)
    keys = [
        (0, "value", "tower", "2023/05/01"), (0, "value", "bell tower stair oil", "2023/05/20"),
        (1, "value", "bell rope", "2023/05/10"), (2, "value", "rope monk", None),
        (3, "value", None, "2023/05/10"),
    ]  # fmt: skip
    return History(keys, expansions=[event], queries=[time_range])


def test_a_page_ranks_by_its_best_key_and_one_without_is_never_found() -> None:
    history = replace(dated(None, None), queries=[])
    assert history.found().used == (1, 2, 0)
    assert history.found(top_k=1).used == (1,)
    used = history.found(by_vectors=True).used
    assert used == (1, 0, 2), "two words of the question; then one, and ties in page order"


@pytest.mark.parametrize(
    ("start", "end", "last", "dropped"),
    [
        (None, None, (1, 2, 0), (1, 2, 0)),
        ("2023/05/15", None, (2, 0, 1), (2, 0)),
        (None, "2023/05/05", (2, 0, 1), (2, 0)),
        ("2023/05/11", "2023/05/13", (1, 2, 0), (1, 2)),
        ("2023/05/02", "2023/05/09", (2, 1, 0), (2,)),
        ("2024/01/01", "2024/02/01", (2, 1, 0), (2,)),
    ],
)
def test_what_is_out_of_range_goes_to_the_end_or_away(
    start: str | None, end: str | None, last: tuple[int, ...], dropped: tuple[int, ...]
) -> None:
    """A page is within by any of its keys and events, and one without a date always."""
    assert dated(start, end).found().used == last
    assert dated(start, end).found(out_of_range="drop").used == dropped


def test_a_range_is_widened() -> None:
    near = dated("2023/05/14", "2023/05/18")
    assert near.found(out_of_range="drop").used == (2,)
    assert near.found(out_of_range="drop", widen_days=2).used == (1, 2, 0)
    assert dated("0001/01/01", "9999/12/31").found(widen_days=2).used == (1, 2, 0)


@pytest.mark.parametrize(
    ("pages_of_session", "ranks"), [(None, 50), (1, 50), (2, 99), (3, 120), (120, 120)]
)
def test_the_ranks_of_50_sessions_are_kept(pages_of_session: int | None, ranks: int) -> None:
    """Of 120 pages in their order; the 50th session of two begins with the 99th page."""
    pages = ["\f[no date]\na " if pages_of_session and n % pages_of_session == 0 else "a "
             for n in range(120)]  # fmt: skip
    turn = History([(n, "value", ASKED, None) for n in range(120)], pages).found(top_k=3)
    assert [page.page_index for page in turn.ranked] == [*range(ranks)]
    assert turn.used == (0, 1, 2)


@pytest.mark.parametrize(
    ("start", "end", "order", "within"),
    [
        (None, None, (1, 2, 0), 3),
        ("2023/05/11", "2023/05/13", (1, 0, 2), 2),  # the event of page 1 is page 0's session's
        ("2023/05/20", "2023/05/20", (1, 2, 0), 0),  # a session's own date is no event's
        ("2024/01/01", None, (1, 2, 0), 0),
        (None, "2023/05/12", (1, 0, 2), 2),
    ],
)
def test_time_goes_by_the_events_of_sessions(
    start: str | None, end: str | None, order: tuple[int, ...], within: int
) -> None:
    """As the authors' temp_query_search_pruning.py: what has no event in range goes to the end."""
    sessions = ("\f[2023/05/01]\na ", "b ", "\f[2023/05/20]\nc ", "\f[no date]\nd")
    history = replace(dated(start, end), pages=sessions)
    assert history.found(dated_by="events").used == order
    assert history.found(dated_by="events", out_of_range="drop").used == order[:within]


# For "bell rope": the values rank 1, 0, 2, the facts 2, 0; all as one pool 1, 0, 2.
SEPARATE = History([
    (0, "value", "bell rope monk stair", None), (0, "fact", "oil", None),
    (1, "value", "bell rope", None), (2, "value", "monk", None), (2, "fact", "bell", None),
])  # fmt: skip
JOINED = History([
    (0, "value", "weather in Bern monk", None), (1, "value", "stair oil", None),
    (2, "merged", "The bell has a rope. bell rope", None),
    (3, "merged", "bell tower rope bell", None),
])  # fmt: skip


@pytest.mark.parametrize(
    ("history", "merge", "by_vectors", "used"),
    [
        # Appendix E.3: a page's best place in any ranking counts, in that of the values first.
        (SEPARATE, "score", False, (1, 0, 2)), (SEPARATE, "rank", False, (1, 2, 0)),
        # The words shared: of values 2, 2 and 0, of the facts of page 2 one.
        (SEPARATE, "score", True, (0, 1, 2)), (SEPARATE, "rank", True, (0, 2, 1)),
        # Joined keys are one ranking: a value without a fact goes after keys that match better.
        (JOINED, "score", False, (2, 3, 0, 1)), (JOINED, "rank", False, (2, 3, 0, 1)),
        (History([]), "score", False, ()), (History([]), "rank", False, ()),
    ],
)  # fmt: skip
def test_ranks_of_kinds_of_keys_are_merged(
    history: History, merge: str, by_vectors: bool, used: tuple[int, ...]
) -> None:
    assert history.found(by_vectors, merge=merge).used == used


def test_without_a_reply_nothing_is_looked_up() -> None:
    turn = dated(None, None, problem="timeout").found()
    assert (turn.used, turn.problem, turn.detail) == (None, "upstream", "queries: timeout")
    assert dated(None, None, problem="unparseable").found().used == (1, 2, 0)


@pytest.mark.parametrize(
    ("reply", "start", "end", "problem"),
    [
        ('{"start": "2023/05/01", "end": "2023/05/07"}', "2023/05/01", "2023/05/07", None),
        ("N/A", None, None, None),
        ('{"start": "2023/05/30", "end": "2023/06/30"}', None, None, None),
        ('{"end": "2023/06/30"}', None, "2023/06/30", None),
        ('{"start": "2023/06/01", "end": "2023/05/01"}', None, None, "unparseable"),
        ("soon", None, None, "unparseable"),
    ],
)
def test_the_time_that_a_question_is_about(
    reply: str, start: str | None, end: str | None, problem: str | None
) -> None:
    """The question is asked on May 30th: a range cannot begin then."""
    rows = book(["a"], questions=[question(asked_at="2023/05/30 (Tue) 23:40")])
    made, calls = run(MakeTimeRange(time_aware=True, extraction_examples=True), rows, always(reply))
    assert [row.kind for row in made] == ["question", "time_range"]
    assert (made[1].start_date, made[1].end_date, made[1].problem) == (start, end, problem)
    assert [call.prompt for call in calls] == ["time_range"]
    plain, _ = run(MakeTimeRange(time_aware=False, extraction_examples=False), rows, never())
    assert [row.kind for row in plain] == ["question"]
