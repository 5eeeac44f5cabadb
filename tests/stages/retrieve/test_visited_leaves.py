"""What a navigation leaves: the segments looked up and the answer."""

from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.read.answer_kinds import AnswerFromVisits
from stages.retrieve.look_up import VisitedLeaves
from stages.tables.lookups import Dropped, Lookup, Visit
from tests.support.engines.walks import ANSWER, PAGES, act, stage, tree, walked
from tests.support.reading import adding, looked_up, never, run


def read(
    *replies: str, rows: UnitRows | None = None, **settings: Any
) -> tuple[list[Lookup], list[Any]]:
    """The look-ups and answers of a navigation."""
    rows = rows or tree()
    rows = adding(rows, {Visit: walked(*replies, rows=rows, **settings)})
    lookups, _ = run(VisitedLeaves(), rows, never())
    own = AnswerFromVisits(first_page=0, answer_words=9, answer_page_tags=True)
    answers, calls = run(own, adding(rows, {Lookup: lookups}), never())
    assert calls == ()
    return lookups, answers


def test_the_answer_is_the_leaf_s_reply() -> None:
    lookups, (answer,) = read(act(1), act(0), act(-1), ANSWER)
    assert lookups == [
        looked_up(3, requested=(2, 3), dropped=(Dropped(2, "rejected"),)),
    ]
    assert (answer.answer, answer.answer_index, answer.problem) == ("(C) a child", 2, None)
    assert (answer.page_indexes, answer.num_lookups, answer.reader) == ((3,), 1, "listener")
    start = len("".join(PAGES[:3]))
    assert [(s.start_char, s.end_char) for s in answer.context_spans] == [
        (start, start + len(PAGES[3]))
    ]
    # Five words of the segment; eight of the root, four of node 5, two of c's summary.
    assert (answer.num_context_words, answer.num_context_tokens) == (5 + 14, 19)
    assert answer.compression_rate == 100 * (1 - 19 / 20)


@pytest.mark.parametrize(
    ("replies", "settings", "problem", "detail"),
    [
        (("?", "?", "?"), {}, "unparseable", None),
        ((act(1), act(0)), {"max_steps": 2}, "no_answer", "stopped at max_steps"),
        ((act(1), act(0), act(-1), act(-1), act(0), act(-1), act(-1)), {}, "no_answer", None),
    ],
)
def test_no_answer(
    replies: tuple[str, ...], settings: dict[str, Any], problem: str, detail: str | None
) -> None:
    lookups, (answer,) = read(*replies, **settings)
    assert (answer.answer, answer.problem, answer.detail) == (None, problem, detail)
    assert answer.compression_rate is None
    assert [row.used for row in lookups] == [()]


def test_a_letter_of_no_option_is_kept() -> None:
    _, (answer,) = read(act(1), act(0), "Action: -2\nAnswer: (K)")
    assert (answer.answer, answer.answer_index, answer.problem) == ("(K)", None, "out_of_range")


def test_a_navigation_that_failed_leaves_its_question_upstream() -> None:
    rows = tree()
    visits = stage().failed(rows, "unit_failed", "why")
    stage().check(rows, visits)
    rows = adding(rows, {Visit: visits})
    lookups, _ = run(VisitedLeaves(), rows, never())
    assert [(row.used, row.problem, row.detail) for row in lookups] == [
        (None, "upstream", "navigate: unit_failed")
    ]
    own = AnswerFromVisits(first_page=0, answer_words=9, answer_page_tags=True)
    (answer,), _ = run(own, adding(rows, {Lookup: lookups}), never())
    assert (answer.problem, answer.detail) == (
        "upstream", "navigate: unit_failed, look_up: upstream",
    )  # fmt: skip
