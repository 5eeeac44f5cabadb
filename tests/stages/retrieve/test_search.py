"""Pages found by all queries of a question, and values found by their keys: worked by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from pipeline.core.rows import UnitRows
from pipeline.engines.embedder import EmbedderSettings, Kind, Vectors
from stages.index.context import raw_pages
from stages.index.search_index import EmbedKeys
from stages.prompts.answer import Passage
from stages.prompts.memorag import ACTIONS, RefineQuery
from stages.query.make_queries import MakeTimeRange
from stages.read.answer_kinds import AnswerFromChunks, AnswerFromTrajectories
from stages.retrieve.search import (
    RefineByBM25,
    RefineByVectors,
    RefinedLookUp,
    SearchByBM25,
    SearchByVectors,
    SearchKeysByBM25,
    SearchKeysByVectors,
)
from stages.tables.keys import Embedding, Expansion, Key
from stages.tables.lookups import Dropped, Lookup, Query, Refinement
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    deadline,
    looked_up,
    never,
    num_tokens,
    question,
    run,
    scripted,
)

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


def pages_on_axes(num: int) -> list[Embedding]:
    return [
        Embedding(document_id="d", page_index=n, chunk_index=0, start_char=0, end_char=0,
                  embedding=tuple(float(n == axis) for axis in range(len(WORDS))))
        for n in range(num)
    ]  # fmt: skip


def test_vectors_of_all_queries_find_their_pages() -> None:
    """Pages are the axes; the second question has no query left, the third no reply."""
    axes = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)
    stage = SearchByVectors(top_k=2, embedder=axes, mean=False)
    asked = [question(name) for name in "qrs"]
    found = [
        *queries("tower bell bell", "rope rope tower"),
        *queries("bell", question_id="r", dropped="short"),
        *queries(None, "bell", question_id="s", problem="timeout"),
    ]
    rows = adding(
        book(["a ", "b ", "c"], questions=asked), {Query: found, Embedding: pages_on_axes(3)}
    )
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
    texts = ("bell bell rope", "tower tower rope", "stair stair rope")
    passages = [replace(row, kind="hypothetical") for row in queries(*texts)]
    own = Query(document_id="d", question_id="q", query_index=3, kind="question", text="rope")
    lost = queries("bell", question_id="r", dropped="short")
    asked = [question("r"), question("q")]
    rows = book(["a ", "b ", "c ", "d"], questions=asked)
    rows = adding(rows, {Query: [*lost, *passages, own], Embedding: pages_on_axes(4)})
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


# page, text, day: rank for "bell rope" is 1, 2, 0 by their best keys
KEYS: list[tuple[int, str | None, str | None]] = [
    (0, "tower", "2023/05/01"),
    (0, "bell tower stair oil", "2023/05/20"),
    (1, "bell rope", "2023/05/10"),
    (2, "rope monk", None),
    (3, None, "2023/05/10"),
]
EVENT = Expansion(document_id="d", page_index=1, item_index=0, kind="event", text="It rang.",
                  day="2023/05/12")  # fmt: skip
ASKED = "bell rope"
SETTINGS: dict[str, Any] = {
    "widen_days": 0, "out_of_range": "last", "dated_by": "any", "merge": "score",
}  # fmt: skip
AXES = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)


def history(*ranges: tuple[str | None, str | None], **more: Any) -> UnitRows:
    keys = [
        Key(document_id="d", page_index=page, key_index=n, kind="value", text=text, day=day)
        for n, (page, text, day) in enumerate(KEYS)
    ]
    queries = [
        Query(document_id="d", question_id="q", query_index=0, kind="question", text=ASKED),
        *(
            Query(document_id="d", question_id="q", query_index=1, kind="time_range", text=None,
                  start_date=start, end_date=end, **more)
            for start, end in ranges
        ),
    ]  # fmt: skip
    rows = book(["a ", "b ", "c ", "d"], questions=[question(text=ASKED)])
    return adding(rows, {Key: keys, Expansion: [EVENT], Query: queries})


def found_by_keys(rows: UnitRows, top_k: int | None = None, **settings: Any) -> Lookup:
    stage = SearchKeysByBM25(
        top_k=top_k, bm25="plus_on_stems",
        **{**SETTINGS, **settings},
    )  # fmt: skip
    (turn,), _ = run(stage, rows, never())
    assert isinstance(turn, Lookup)
    return turn


def test_a_page_ranks_by_its_best_key_and_one_without_is_never_found() -> None:
    assert found_by_keys(history()).used == (1, 2, 0)
    assert found_by_keys(history(), top_k=1).used == (1,)
    vectors = run(EmbedKeys(embedder=AXES), history(), never())[0]
    stage = SearchKeysByVectors(top_k=None, embedder=AXES, **SETTINGS)
    rows = adding(history(), {type(vectors[0]): vectors})
    (turn,), _ = run(stage, rows, never())
    assert turn.used == (1, 0, 2), "two words of the question; then one, and ties in page order"


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
    rows = history((start, end))
    assert found_by_keys(rows).used == last
    assert found_by_keys(rows, out_of_range="drop").used == dropped


def test_a_range_is_widened() -> None:
    rows = history(("2023/05/14", "2023/05/18"))
    assert found_by_keys(rows, out_of_range="drop").used == (2,)
    assert found_by_keys(rows, out_of_range="drop", widen_days=2).used == (1, 2, 0)
    assert found_by_keys(history(("0001/01/01", "9999/12/31")), widen_days=2).used == (1, 2, 0)


@pytest.mark.parametrize(
    ("pages_of_session", "ranks"), [(None, 50), (1, 50), (2, 99), (3, 120), (120, 120)]
)
def test_the_ranks_of_50_sessions_are_kept(pages_of_session: int | None, ranks: int) -> None:
    """Of 120 pages in their order; the 50th session of two begins with the 99th page."""
    texts = ["\f[no date]\na " if pages_of_session and n % pages_of_session == 0 else "a "
             for n in range(120)]  # fmt: skip
    keys = [Key(document_id="d", page_index=n, key_index=n, kind="value", text=ASKED, day=None)
            for n in range(120)]  # fmt: skip
    rows = book(texts, questions=[question(text=ASKED)])
    turn = found_by_keys(adding(rows, {Key: keys, Expansion: [], Query: []}), top_k=3)
    assert [page.page_index for page in turn.ranked] == [*range(ranks)]
    assert turn.used == (0, 1, 2)


SESSIONS = ("\f[2023/05/01]\na ", "b ", "\f[2023/05/20]\nc ", "\f[no date]\nd")


@pytest.mark.parametrize(
    ("start", "end", "order"),
    [
        (None, None, (1, 2, 0)),
        ("2023/05/11", "2023/05/13", (1, 0, 2)),  # the event of page 1 is of page 0's session, too
        ("2023/05/20", "2023/05/20", (1, 2, 0)),  # a session's own date is no event's
        ("2024/01/01", None, (1, 2, 0)),
        (None, "2023/05/12", (1, 0, 2)),
    ],
)
def test_time_goes_by_the_events_of_sessions(
    start: str | None, end: str | None, order: tuple[int, ...]
) -> None:
    """As the authors' temp_query_search_pruning.py: what has no event in range goes to the end."""
    rows = history((start, end))
    rows = adding(
        book(SESSIONS, questions=rows.questions),
        {kind: list(rows[kind]) for kind in (Key, Expansion, Query)},
    )
    assert found_by_keys(rows, dated_by="events").used == order
    within = () if start in ("2023/05/20", "2024/01/01") else order[:2] if start or end else order
    assert found_by_keys(rows, dated_by="events", out_of_range="drop").used == within


# For "bell rope": the values rank 1, 0, 2, the facts 2, 0; all as one pool 1, 0, 2.
SEPARATE = [
    (0, "value", "bell rope monk stair"),
    (0, "fact", "oil"),
    (1, "value", "bell rope"),
    (2, "value", "monk"),
    (2, "fact", "bell"),
]
JOINED = [
    (0, "value", "weather in Bern monk"),
    (1, "value", "stair oil"),
    (2, "merged", "The bell has a rope. bell rope"),
    (3, "merged", "bell tower rope bell"),
]


def pools(keys: Sequence[tuple[int, str, str]] = SEPARATE) -> UnitRows:
    made = [
        Key(document_id="d", page_index=page, key_index=n, kind=kind, text=text, day=None)
        for n, (page, kind, text) in enumerate(keys)
    ]
    asked = Query(document_id="d", question_id="q", query_index=0, kind="question", text=ASKED)
    rows = book(["a "] * (1 + max((page for page, *_ in keys), default=0)),
                questions=[question(text=ASKED)])  # fmt: skip
    return adding(rows, {Key: made, Expansion: [], Query: [asked]})


def test_ranks_of_kinds_of_keys_are_merged() -> None:
    """Appendix E.3: a page's best place in any ranking counts, in that of the values first."""
    assert found_by_keys(pools()).used == (1, 0, 2)
    assert found_by_keys(pools(), merge="rank").used == (1, 2, 0)
    # The words shared: of values 2, 2 and 0, of the facts of page 2 one.
    vectors = run(EmbedKeys(embedder=AXES), pools(), never())[0]
    for merge, used in (("score", (0, 1, 2)), ("rank", (0, 2, 1))):
        stage = SearchKeysByVectors(top_k=None, embedder=AXES, **{**SETTINGS, "merge": merge})
        (turn,), _ = run(stage, adding(pools(), {type(vectors[0]): vectors}), never())
        assert turn.used == used


@pytest.mark.parametrize("merge", ["score", "rank"])
def test_keys_that_are_joined_are_one_ranking(merge: str) -> None:
    """A value without a fact has no place beside keys that match the question better."""
    assert found_by_keys(pools(JOINED), merge=merge).used == (2, 3, 0, 1)
    assert found_by_keys(pools([]), merge=merge).used == ()


def test_without_a_reply_nothing_is_looked_up() -> None:
    turn = found_by_keys(history((None, None), problem="timeout"))
    assert (turn.used, turn.problem, turn.detail) == (None, "upstream", "queries: timeout")
    assert found_by_keys(history((None, None), problem="unparseable")).used == (1, 2, 0)


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


PAGES = ("bell bell. ", "rope rope. ", "tower tower. ", "stair stair. ")
STAGE = RefineByBM25(top_k=1, steps=3, bm25="plus_on_stems")
ANSWER = AnswerFromTrajectories(first_page=0, answer_words=9, answer_page_tags=False)


def rows(*tables: Any, **more: Any) -> UnitRows:
    unit = book(PAGES, questions=[question(text="Who rang?", **more)])
    return adding(unit, {type(own[0]): own for own in tables})


def by_action(**queries: list[str]) -> Listener:
    """The replies of each trajectory in its steps, told apart by the first query."""
    firsts = {own[0]: own for own in queries.values()}

    def reply(request: Any) -> str:
        fields = request.fields
        assert isinstance(fields, RefineQuery)
        if fields.action is not None:
            return queries[fields.action][0]
        return firsts[fields.queries[0]][len(fields.queries)]

    return Listener(reply)


def test_each_action_on_the_question_begins_a_trajectory() -> None:
    engine = by_action(
        rewrite=["bell", "rope", "ENOUGH"], decompose=["tower", "ENOUGH"],
        disambiguate=["stair", "stair", "bell"],
    )  # fmt: skip
    made, calls = run(STAGE, rows(), engine)
    assert [(row.turn, row.trajectory, row.action, row.text, row.used) for row in made] == [
        (0, 0, "rewrite", "bell", (0,)), (1, 0, None, "rope", (1,)), (2, 0, None, "", ()),
        (3, 1, "decompose", "tower", (2,)), (4, 1, None, "", ()),
        (5, 2, "disambiguate", "stair", (3,)), (6, 2, None, "stair", ()),
        (7, 2, None, "bell", (0,)),
    ]  # fmt: skip
    assert len(calls) == 8
    fields = [r.fields for r in engine.requests if isinstance(r.fields, RefineQuery)]
    third = next(prompt for prompt in fields if prompt.queries == ("bell", "rope"))
    assert [passage.text for passage in third.passages] == ["bell bell.", "rope rope."]
    (turn, *others), _ = run(RefinedLookUp(), rows(made), never())
    used = [one.used for one in (turn, *others)]
    assert used == [(0,), (1,), (2,), (3,), (), ()], "a page that was found is used once"
    dropped = [one.dropped for one in (turn, *others)]
    assert dropped == [(), (), (), (), (), (Dropped(0, "duplicate"),)]


def test_by_vectors_and_at_most_so_many_steps() -> None:
    axes = Axes(model=None, chunk_words=None, device="cpu", batch_size=1)
    stage = RefineByVectors(top_k=2, steps=1, embedder=axes)
    made, _ = run(stage, rows(pages_on_axes(4)), always("tower rope tower"))
    assert [(row.trajectory, row.used) for row in made] == [(0, (2, 1)), (1, (2, 1)), (2, (2, 1))]


@pytest.mark.parametrize(
    ("rule", "problem", "lack"),
    [({"reply": "..."}, "unparseable", None), ({"hang": True}, "timeout", "refine: timeout")],
)
def test_a_step_without_a_query_ends_its_trajectory(
    tmp_path: Path, rule: dict[str, Any], problem: str, lack: str | None
) -> None:
    rules = ({"match": "decompose", **rule}, {"reply": "bell"})
    engine = scripted(tmp_path, *rules)
    made, _ = run(STAGE, rows(), engine, deadline_seconds=deadline(*rules))
    own = [row for row in made if row.trajectory == 1]
    assert [(row.text, row.problem, row.why_unusable()) for row in own] == [(None, problem, lack)]
    assert len([row for row in made if row.trajectory == 0]) == 3
    (turn, *_), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.problem, turn.detail) == (("upstream", lack) if lack else (None, None))


def test_a_step_that_outgrows_the_context_ends_its_trajectory() -> None:
    """What the steps before it found is answered from; a question without room is not."""
    first = max(num_tokens(RefineQuery((), "Who rang?", (), (), action)) for action in ACTIONS)
    engine = Listener(lambda request: "bell", first + 50)
    made, _ = run(STAGE, rows(), engine, reply_tokens={"refine_query": 50})
    steps = [("bell", None), (None, "context_overflow")]
    assert [(row.text, row.problem) for row in made] == steps * 3
    (turn, *_), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.used, turn.problem) == ((0,), None)
    (answer,), _ = run(ANSWER, rows(made, [turn]), always("Nobody."))
    assert (answer.answer, answer.page_indexes, answer.problem) == ("Nobody.", (0,), None)
    engine = Listener(lambda request: "bell", 60)
    made, _ = run(STAGE, rows(), engine, reply_tokens={"refine_query": 50})
    (turn,), _ = run(RefinedLookUp(), rows(made), never())
    assert (turn.used, turn.problem) == (None, "upstream")


def found(*used: tuple[int, ...]) -> list[Refinement]:
    return [
        Refinement(document_id="d", question_id="q", turn=n, trajectory=n, text="x", used=pages)
        for n, pages in enumerate(used)
    ]


def answered(engine: Any, reply_tokens: Any = None, **more: Any) -> Any:
    refined = found((0,), (1, 2), (3,))
    looked_up = [Lookup(document_id="d", question_id="q", turn=0, used=(0, 1, 2, 3))]
    unit = rows(refined, looked_up, **more)
    (answer,), calls = run(ANSWER, unit, engine, reply_tokens=reply_tokens)
    assert {call.turn for call in calls} == {0, 1, 2}
    return answer


def by_page(bell: str, rope: str, stair: str) -> Listener:
    def reply(request: Any) -> str:
        text = request.messages[0]["content"]
        return bell if "bell" in text else rope if "rope" in text else stair

    return Listener(reply)


def test_the_answer_is_the_one_that_the_others_share_most_with() -> None:
    """By hand: F1 of "a b" and "a b c" is 4/5, of "a b" and "z" 0, of "a b c" and "z" 0."""
    answer = answered(by_page("z", "a b", "a b c"))
    assert (answer.answer, answer.page_indexes, answer.detail) == (
        "a b",
        (1, 2),
        "trajectory 1 of 3",
    )
    assert answered(by_page("z", "y", "x")).detail == "trajectory 0 of 3"
    options = {"options": ("one", "two", "three")}
    letters = answered(by_page("Answer: (A)", "Answer: (C)", "Answer: (C)"), **options)
    assert (letters.answer_index, letters.detail) == (2, "trajectory 1 of 3")


def test_a_trajectory_without_an_answer_does_not_count() -> None:
    options = {"options": ("one", "two")}
    answer = answered(by_page("???", "Answer: (B)", "???"), **options)
    assert (answer.answer_index, answer.problem) == (1, None)
    lost = answered(by_page("???", "???", "???"), **options)
    assert lost.problem == "unparseable"


def test_pages_without_room_are_left_out_of_a_trajectory() -> None:
    """Two pages are one too many."""
    asked = [ANSWER.prompt(question(text="Who rang?"), raw_pages(rows(), used, 0))
             for used in ((2,), (1, 2))]  # fmt: skip
    one, two = (num_tokens(prompt) for prompt in asked)
    assert one < two
    engine = by_page("z", "a b", "a b c")
    engine.context_tokens = two - 1 + 50
    answer = answered(engine, {"answer": 50})
    assert (answer.answer, answer.page_indexes, answer.problem) == ("a b", (1,), None)
    assert answer.detail == "trajectory 1 of 3, no room for 1 of 2 pages"
