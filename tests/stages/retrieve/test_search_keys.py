"""Values found by their keys, and what a time range does to them."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.index.embed import EmbedKeys
from stages.query.make_queries import MakeTimeRange
from stages.retrieve.look_up import LatestPages
from stages.retrieve.search_keys import SearchKeysByBM25, SearchKeysByVectors
from stages.tables.keys import Expansion, Key
from stages.tables.lookups import Lookup, Query
from tests.stages.retrieve.test_search import Axes
from tests.support.reading import adding, always, book, never, question, run

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


def found(rows: UnitRows, top_k: int | None = None, **settings: Any) -> Lookup:
    stage = SearchKeysByBM25(
        top_k=top_k, bm25="plus_on_stems",
        **{**SETTINGS, **settings},
    )  # fmt: skip
    (turn,), _ = run(stage, rows, never())
    assert isinstance(turn, Lookup)
    return turn


def test_a_page_ranks_by_its_best_key_and_one_without_is_never_found() -> None:
    assert found(history()).used == (1, 2, 0)
    assert found(history(), top_k=1).used == (1,)
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
    assert found(rows).used == last
    assert found(rows, out_of_range="drop").used == dropped


def test_a_range_is_widened() -> None:
    rows = history(("2023/05/14", "2023/05/18"))
    assert found(rows, out_of_range="drop").used == (2,)
    assert found(rows, out_of_range="drop", widen_days=2).used == (1, 2, 0)
    assert found(history(("0001/01/01", "9999/12/31")), widen_days=2).used == (1, 2, 0)


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
    turn = found(adding(rows, {Key: keys, Expansion: [], Query: []}), top_k=3)
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
    assert found(rows, dated_by="events").used == order
    within = () if start in ("2023/05/20", "2024/01/01") else order[:2] if start or end else order
    assert found(rows, dated_by="events", out_of_range="drop").used == within


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


def found_by_vectors(rows: UnitRows, merge: Any) -> Lookup:
    vectors = run(EmbedKeys(embedder=AXES), rows, never())[0]
    stage = SearchKeysByVectors(top_k=None, embedder=AXES, **{**SETTINGS, "merge": merge})
    (turn,), _ = run(stage, adding(rows, {type(vectors[0]): vectors}), never())
    assert isinstance(turn, Lookup)
    return turn


def test_ranks_of_kinds_of_keys_are_merged() -> None:
    """Appendix E.3: a page's best place in any ranking counts, in that of the values first."""
    assert found(pools()).used == (1, 0, 2)
    assert found(pools(), merge="rank").used == (1, 2, 0)
    # The words shared: of values 2, 2 and 0, of the facts of page 2 one.
    assert found_by_vectors(pools(), "score").used == (0, 1, 2)
    assert found_by_vectors(pools(), "rank").used == (0, 2, 1)


@pytest.mark.parametrize("merge", ["score", "rank"])
def test_keys_that_are_joined_are_one_ranking(merge: str) -> None:
    """A value without a fact has no place beside keys that match the question better."""
    assert found(pools(JOINED), merge=merge).used == (2, 3, 0, 1)
    assert found(pools([]), merge=merge).used == ()


def test_without_a_reply_nothing_is_looked_up() -> None:
    turn = found(history((None, None), problem="timeout"))
    assert (turn.used, turn.problem, turn.detail) == (None, "upstream", "queries: timeout")
    assert found(history((None, None), problem="unparseable")).used == (1, 2, 0)


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


def test_the_latest_come_first() -> None:
    rows = book(["a ", "b ", "c"], questions=[question()])
    (turn,), _ = run(LatestPages(top_k=2), rows, never())
    assert turn.used == (2, 1)
