"""Raw pages after the gist memory: in which order, and what look-ups and answers show of them."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.core.engine import Request
from pipeline.core.rows import UnitRows
from stages.index.context import orders_alike
from stages.read.answer_from_context import AnswerFromMemory
from stages.retrieve.read_agent import ReadAgentP, ReadAgentS
from stages.tables.lookups import Lookup
from tests.support.reading import Listener, adding, book, in_turn, looked_up, question, run

PAGES = ("Dawn came at six.\n", "The bell rang at noon.\n", "Nobody was there.\n", "Dusk fell.\n")
GISTS = ("dawn", "noon", "nobody", "dusk")
APPENDED: dict[str, Any] = {
    "first_page": 0, "layout": "appended", "appended_heading": "Raw pages:",
}  # fmt: skip
ANSWER = AnswerFromMemory(**APPENDED, answer_words=30, answer_page_tags=True)
MEMORY = "<Page 0> dawn <Page 1> noon <Page 2> nobody <Page 3> dusk"


def rows(**used: Sequence[int]) -> UnitRows:
    """A question of each name, whose only look-up read these pages."""
    questions = [question(name, f"Question {name}?") for name in used]
    lookups = [looked_up(*pages, question_id=name) for name, pages in used.items()]
    return book(PAGES, GISTS, questions, lookups)


def shown(request: Request) -> str:
    """What stands before the question, on one line."""
    text = request.messages[0]["content"].partition("Question")[0]
    return " ".join(text.partition("left out.")[2].split())


@pytest.mark.parametrize(
    ("chosen", "orders"),
    [
        ([], []),
        ([{3, 1}], [[1, 3]]),  # nothing is shared: in the order of the document
        ([{1, 2}, {2}, {2, 0}], [[2, 1], [2], [2, 0]]),  # page 2 in three sets, so first in all
        ([set(), {1}], [[], [1]]),
        ([{0, 3}, {0, 3}, {0, 2}, {2, 1}], [[0, 3], [0, 3], [0, 2], [1, 2]]),  # 0 before 2
        # Page 9 has more words than all others: of two sets it saves more than page 0 of three.
        ([{0, 9}, {0, 9}, {0, 1}], [[9, 0], [9, 0], [0, 1]]),
    ],
)
def test_pages_come_first_that_save_most_words(
    chosen: list[set[int]], orders: list[list[int]]
) -> None:
    sets = [frozenset(pages) for pages in chosen]
    words = dict.fromkeys(range(9), 10) | {9: 1000}
    order_of = orders_alike(sets, words)
    assert [order_of[pages] for pages in sets] == orders


def test_answers_show_the_whole_memory_and_then_the_pages_in_a_shared_order() -> None:
    engine = Listener(lambda request: "At noon.")
    answers, _ = run(ANSWER, rows(a=[3, 1], b=[1], c=[]), engine)
    noon, dusk = "<Page 1> The bell rang at noon.", "<Page 3> Dusk fell."
    assert [shown(request) for request in engine.requests] == [
        f"{MEMORY} Raw pages: {noon} {dusk}", f"{MEMORY} Raw pages: {noon}", MEMORY,
    ]  # fmt: skip
    # Four gists of a word each, and pages of five and two; the heading does not count.
    assert [(row.num_context_words, row.num_lookups, row.page_indexes) for row in answers] == [
        (4 + 5 + 2, 2, (1, 3)), (4 + 5, 1, (1,)), (4, 0, ()),
    ]  # fmt: skip
    assert [row.num_context_tokens for row in answers] == [11, 9, 4]


def test_the_least_important_page_is_left_out_whatever_the_order() -> None:
    small = AnswerFromMemory(**APPENDED, answer_words=30, answer_page_tags=True, budget=9)
    engine = Listener(lambda request: "At dusk.")
    answers, _ = run(small, rows(a=[3, 1], b=[1]), engine)
    assert shown(engine.requests[0]) == f"{MEMORY} Raw pages: <Page 3> Dusk fell."
    assert [row.detail for row in answers] == ["no room for 1 of 2 pages", None]


def test_sequential_look_ups_append_pages_as_they_were_read() -> None:
    stage = ReadAgentS(
        **APPENDED, max_pages=3, answer_each_look_up=False, answer_words=None, answer_page_tags=True
    )
    questions = [question("a", "Question a?"), question("b", "Question b?")]
    engine = in_turn("Page 3", "Page 1", "STOP")
    lookups, _ = run(stage, book(PAGES, GISTS, questions[:1]), engine)
    dusk, noon = "<Page 3> Dusk fell.", "<Page 1> The bell rang at noon."
    assert [shown(request) for request in engine.requests] == [
        MEMORY, f"{MEMORY} Raw pages: {dusk}", f"{MEMORY} Raw pages: {dusk} {noon}",
    ]  # fmt: skip
    # Question b alone would have page 1 before page 3; a's answer begins as its look-ups did.
    lookups.append(looked_up(1, question_id="b"))
    reader = Listener(lambda request: "At noon.")
    run(ANSWER, adding(book(PAGES, GISTS, questions), {Lookup: lookups}), reader)
    assert [shown(request) for request in reader.requests] == [
        f"{MEMORY} Raw pages: {dusk} {noon}", f"{MEMORY} Raw pages: {noon}",
    ]  # fmt: skip


def test_a_parallel_look_up_leaves_room_for_gists_and_pages() -> None:
    """Within 4 + 5 words, the gists and page 1. In place there would be room for page 3, too."""
    given = book(PAGES, GISTS, [question()])
    used = {}
    for layout in ("in_place", "appended"):
        values = {**APPENDED, "layout": layout, "budget": 10, "max_pages": 2}
        ((row,), _) = run(ReadAgentP(**values), given, in_turn("Page [1, 3]"))
        used[layout] = row.used
    assert used == {"in_place": (1, 3), "appended": (1,)}
