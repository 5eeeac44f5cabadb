"""Look-ups without a model, worked by hand: pages found by all queries of a question, and values by
their keys; BM25, random, latest and oracle pages, and who may see gold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any, ClassVar

import numpy as np
import pytest

from pipeline.core.rows import Span, UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from pipeline.work.stage import GOLD, STAGES, Stage
from stages.gathered.gathered_pages import GivenGists, PaginateGiven
from stages.index.search_index import EmbedKeys
from stages.judge.rate import RateAnswers, RateByType
from stages.query.make_queries import MakeTimeRange
from stages.read.answer_kinds import AnswerFromChunks
from stages.retrieve.look_up import BM25, LatestPages, OraclePages, RandomPages, RankedPages
from stages.retrieve.search import (
    SearchByBM25,
    SearchByVectors,
    SearchKeysByBM25,
    SearchKeysByVectors,
)
from stages.score.score import ScoreAnswers
from stages.tables.lookups import Dropped, Lookup, Query
from stages.tables.pages import Embedding, Expansion, Key
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


AXES = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)


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
    made, _ = run(SearchByVectors(top_k=2, embedder=AXES, mean=False), rows, never())
    ranked = [tuple(page.page_index for page in turn.ranked) for turn in made]
    assert ranked == [(0, 2), (1, 2), (), ()], "what shares nothing with a query is not found"
    twice = "queries: timeout, queries: timeout"
    assert [replace(turn, ranked=()) for turn in made] == [
        looked_up(0, 2, query_index=0),
        looked_up(1, turn=1, query_index=1, requested=(1, 2), dropped=(Dropped(2, "duplicate"),)),
        looked_up(question_id="r"),
        looked_up(question_id="s", used=None, problem="upstream", detail=twice),
    ]


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
    made, _ = run(SearchByVectors(top_k=1, embedder=AXES, mean=True), rows, never())
    assert made == [looked_up(question_id="r"), looked_up(1, ranked=made[1].ranked)]
    assert [page.score for page in made[1].ranked] == [1.0, 0.5, 0.5, 0.5]
    assert Axes.seen == [*((text, "document") for text in texts), ("rope", "query")]


@pytest.mark.parametrize("mean", [False, True])
def test_a_page_that_shares_nothing_is_found_by_a_question_alone(mean: bool) -> None:
    unit = book(["The bell. ", "The rope. ", "A rope, a bell."], questions=[question()])
    stage = SearchByBM25(top_k=2, bm25="plus_on_stems", mean=mean)
    for kind, text, used in (("hypothetical", "zebra quagga", ()), ("question", "zebra", (0, 1)),
                             ("hypothetical", "zebra rope", (1, 2))):  # fmt: skip
        (turn,), _ = run(stage, adding(unit, {Query: [query(text, kind=kind)]}), never())
        assert turn.used == used


def test_a_draft_stands_after_the_chunks() -> None:
    guess = "(A guess, made from memory: The sexton did.)"
    unit = book(["The bell. ", "The rope. ", "The end."], questions=[question()])
    stage = AnswerFromChunks(first_page=0, answer_words=9, answer_page_tags=False)
    for kind, more, words in (("span", [], 4), ("draft", [guess], 7)):
        found, engine = [query("bell"), query("The sexton did.", 1, kind)], always("Nobody.")
        (answer,), _ = run(stage, adding(unit, {Query: found, Lookup: [looked_up(2, 0)]}), engine)
        shown: Any = engine.requests[0].fields
        assert [passage.text for passage in shown.passages] == ["The bell.", "The end.", *more]
        assert (answer.page_indexes, answer.num_context_words) == ((0, 2), words)


ASKED = "bell rope"
PAGES = ["The bell rang. ", "A candle burned. ", "Bell, bell and book! ", "Smoke rose. "]


@dataclass
class History:
    """A chat whose pages have these keys: page, kind, text and perhaps the day."""

    keys: Sequence[tuple[Any, ...]]
    pages: Sequence[str] = ("a ", "b ", "c ", "d")
    expansions: Sequence[Expansion] = ()
    queries: Sequence[Query] = ()

    def found(self, by_vectors: bool = False, **settings: Any) -> Lookup:
        keys = [Key(document_id="d", page_index=page, key_index=n, kind=kind, text=text,
                    day=day[0] if day else None)
                for n, (page, kind, text, *day) in enumerate(self.keys)]  # fmt: skip
        asked = [query(ASKED, kind="question"), *self.queries]
        rows = adding(book(self.pages, questions=[question(text=ASKED)]),
                      {Key: keys, Expansion: self.expansions, Query: asked})  # fmt: skip
        settings = {"widen_days": 0, "out_of_range": "last", "dated_by": "any", "merge": "score",
                    "top_k": None, **settings}  # fmt: skip
        stage: Stage = SearchKeysByBM25(bm25="plus_on_stems", **settings)
        if by_vectors:
            vectors, _ = run(EmbedKeys(embedder=AXES), rows, never())
            rows = adding(rows, {Embedding: vectors})
            stage = SearchKeysByVectors(embedder=AXES, **settings)
        (turn,), _ = run(stage, rows, never())
        assert isinstance(turn, Lookup)
        return turn


def dated(start: str | None, end: str | None, **more: Any) -> History:
    """Ranked for "bell rope" are 1, 2, 0 by their best keys; the question is about a range."""
    event = Expansion(document_id="d", page_index=1, item_index=0, kind="event", text="It rang.",
                      day="2023/05/12")  # fmt: skip
    time_range = query(None, 1, "time_range", start_date=start, end_date=end, **more)
    keys = [
        (0, "value", "tower", "2023/05/01"), (0, "value", "bell tower stair oil", "2023/05/20"),
        (1, "value", "bell rope", "2023/05/10"), (2, "value", "rope monk"),
        (3, "value", None, "2023/05/10"),
    ]  # fmt: skip
    sessions = ("\f[2023/05/01]\na ", "b ", "\f[2023/05/20]\nc ", "\f[no date]\nd")
    return History(keys, sessions, [event], [time_range])


def test_a_page_ranks_by_its_best_key_and_one_without_is_never_found() -> None:
    history = replace(dated(None, None), queries=())
    assert history.found().used == (1, 2, 0)
    assert history.found(top_k=1).used == (1,)
    used = history.found(by_vectors=True).used
    assert used == (1, 0, 2), "two words of the question; then one, and ties in page order"


@pytest.mark.parametrize(
    ("dated_by", "start", "end", "widen_days", "last", "within"),
    [
        # A page is within by any of its keys and events, and one without a date always.
        ("any", None, None, 0, (1, 2, 0), 3), ("any", "2023/05/15", None, 0, (2, 0, 1), 2),
        ("any", None, "2023/05/05", 0, (2, 0, 1), 2),
        ("any", "2023/05/11", "2023/05/13", 0, (1, 2, 0), 2),
        ("any", "2023/05/14", "2023/05/18", 0, (2, 1, 0), 1),
        ("any", "2023/05/14", "2023/05/18", 2, (1, 2, 0), 3),
        ("any", "2024/01/01", "2024/02/01", 2, (2, 1, 0), 1),
        ("any", "0001/01/01", "9999/12/31", 2, (1, 2, 0), 3),
        # As the authors' temp_query_search_pruning.py: what has no event in range goes to the end.
        ("events", None, None, 0, (1, 2, 0), 3), ("events", None, "2023/05/12", 0, (1, 0, 2), 2),
        ("events", "2023/05/11", "2023/05/13", 0, (1, 0, 2), 2),  # page 1's event is of page 0, too
        ("events", "2023/05/20", "2023/05/20", 0, (1, 2, 0), 0),  # a session's date is no event's
    ],
)  # fmt: skip
def test_what_is_out_of_range_goes_to_the_end_or_away(
    dated_by: str, start: str | None, end: str | None, widen_days: int, last: tuple[int, ...],
    within: int,
) -> None:  # fmt: skip
    found = partial(dated(start, end).found, dated_by=dated_by, widen_days=widen_days)
    assert found().used == last
    assert found(out_of_range="drop").used == last[:within]


@pytest.mark.parametrize(
    ("pages_of_session", "ranks"), [(None, 50), (1, 50), (2, 99), (3, 120), (120, 120)]
)
def test_the_ranks_of_50_sessions_are_kept(pages_of_session: int | None, ranks: int) -> None:
    """Of 120 pages in their order; the 50th session of two begins with the 99th page."""
    pages = ["\f[no date]\na " if pages_of_session and n % pages_of_session == 0 else "a "
             for n in range(120)]  # fmt: skip
    turn = History([(n, "value", ASKED) for n in range(120)], pages).found(top_k=3)
    assert [page.page_index for page in turn.ranked] == [*range(ranks)]
    assert turn.used == (0, 1, 2)


# For "bell rope": the values rank 1, 0, 2, the facts 2, 0; all as one pool 1, 0, 2.
SEPARATE = History([(0, "value", "bell rope monk stair"), (0, "fact", "oil"),
                    (1, "value", "bell rope"), (2, "value", "monk"),
                    (2, "fact", "bell")])  # fmt: skip
JOINED = History([(0, "value", "weather in Bern monk"), (1, "value", "stair oil"),
                  (2, "merged", "The bell has a rope. bell rope"),
                  (3, "merged", "bell tower rope bell")])  # fmt: skip


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


def test_the_time_that_a_question_is_about() -> None:
    """The question is asked on May 30th: a range cannot begin then."""
    rows = book(["a"], questions=[question(asked_at="2023/05/30 (Tue) 23:40")])
    for reply, start, end, problem in (
        ('{"start": "2023/05/01", "end": "2023/05/07"}', "2023/05/01", "2023/05/07", None),
        ('{"start": "2023/05/30", "end": "2023/06/30"}', None, None, None),
        ('{"end": "2023/06/30"}', None, "2023/06/30", None), ("soon", None, None, "unparseable"),
    ):  # fmt: skip
        made, _ = run(MakeTimeRange(time_aware=True, extraction_examples=True), rows, always(reply))
        assert [row.kind for row in made] == ["question", "time_range"]
        assert (made[1].start_date, made[1].end_date, made[1].problem) == (start, end, problem)
    plain, _ = run(MakeTimeRange(time_aware=False, extraction_examples=False), rows, never())
    assert [row.kind for row in plain] == ["question"]


def look_up(stage: BM25 | RankedPages | OraclePages, rows: UnitRows) -> list[Lookup]:
    """Its rows without their rankings, which begin with what is requested."""
    made, _ = run(stage, rows, never())
    for row in made:
        order = [page.page_index for page in row.ranked]
        assert order[: len(row.requested)] == [*row.requested[:50]]
    return [replace(row, ranked=()) for row in made]


@pytest.mark.parametrize("num_pages", [0, 2, 60])
@pytest.mark.parametrize("top_k", [99, None])
def test_all_pages_where_there_are_no_more_or_no_number_is_set(
    num_pages: int, top_k: int | None
) -> None:
    """Of 60 pages the first 50 ranks are kept."""
    rows = book(["word "] * num_pages, questions=[question(evidence=(Span(0, 300),))])
    for stage in (BM25(top_k=top_k, bm25="okapi_on_words"), OraclePages(top_k=top_k),
                  RandomPages(top_k=top_k, seed=1, repeat=0)):  # fmt: skip
        (row,) = look_up(stage, rows)
        assert sorted(row.used or ()) == [*range(num_pages)]
    assert look_up(LatestPages(top_k=top_k), rows) == [looked_up(*reversed(range(num_pages)))]


def test_bm25_best_first_ties_to_the_lower_page() -> None:
    """Stems: 2 of 4 pages have `bell`. BM25+ with k1 1.5, b 0.75, delta 1 (Lv and Zhai 2011): idf
    log(5 / 2), pages of 2, 2, 3 and 2 stems; what delta gives every page is left out."""
    idf, mean = log(5 / 2), 9 / 4

    def score(times: int, stems: int) -> float:
        return idf * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * stems / mean))

    rows = book(PAGES, questions=[question(text="the bells?")])
    (row,), _ = run(BM25(top_k=2, bm25="plus_on_stems"), rows, never())
    assert (row.used, [page.page_index for page in row.ranked]) == ((2, 0), [2, 0, 1, 3])
    assert [page.score for page in row.ranked] == pytest.approx([score(2, 3), score(1, 2), 0, 0])
    rows = book(PAGES, questions=[question(text="bells?")])  # which is no word of any page
    assert look_up(BM25(top_k=2, bm25="okapi_on_words"), rows) == [looked_up(0, 1)]


def test_random_pages_are_those_of_seed_question_and_repeat() -> None:
    def drawn(seed: int, repeat: int, num_questions: int = 20) -> list[Any]:
        rows = book(["word "] * 30, questions=[question(f"q{i}") for i in range(num_questions)])
        return [row.used for row in look_up(RandomPages(top_k=3, seed=seed, repeat=repeat), rows)]

    many = drawn(0, 0, num_questions=300)
    first = drawn(0, 0)
    assert first == many[:20]  # whoever else is asked
    for other in (drawn(0, 1), drawn(1, 0)):
        assert sum(a == b for a, b in zip(first, other, strict=True)) <= 2
    assert len({*first}) >= 18
    assert all(len({*pages}) == 3 for pages in many)
    assert {page for pages in many for page in pages} == {*range(30)}


@pytest.mark.parametrize(
    ("evidence", "best"),
    [
        ([(0, 3), (25, 60)], [2, 1, 0]),
        ([(10, 20), (15, 26), (15, 26)], [1, 0]),  # overlaps count once
        ([(29, 31)], [1, 2]),  # a character of each: a tie
        ([(40, 50), (3, 9), (16, 24)], [2, 1, 0]),
    ],
)
def test_oracle_orders_pages_by_their_gold_characters(
    evidence: list[tuple[int, int]], best: list[int]
) -> None:
    """It skips a question without any."""
    pages = ["x" * 15, "x" * 15, "x" * 30, "x" * 6]  # 0-15, 15-30, 30-60, 60-66
    asked = [question(evidence=tuple(Span(*span) for span in evidence)), question("r")]
    for top_k in (1, 2, 4):
        made = look_up(OraclePages(top_k=top_k), book(pages, questions=asked))
        assert made == [looked_up(*best[:top_k]), looked_up(question_id="r", skipped=True)]


def test_only_oracle_rate_and_score_are_given_gold() -> None:
    """And of documents no stage is given more than its text and its length, but one that reads
    pages and gists of other documents from its metadata."""
    ours = [stage for stage in STAGES.values() if stage.__module__.startswith("stages.")]
    gold = {stage for stage in ours if set(stage.question_fields) & set(GOLD)}
    assert gold == {OraclePages, RateAnswers, RateByType, ScoreAnswers}
    others = [stage for stage in ours if stage not in (PaginateGiven, GivenGists)]
    assert {field for stage in others for field in stage.document_fields} == {"text", "num_words"}
    assert len(ours) > 10
