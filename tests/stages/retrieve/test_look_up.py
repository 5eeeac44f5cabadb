"""Parallel look-up by hand, and what every look-up has in common."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from pipeline.core.rows import UnitRows
from stages.prompts.choose_pages import ParallelLookUp
from stages.retrieve.read_agent import ReadAgentP
from stages.tables.lookups import Dropped, Lookup
from tests.support.reading import (
    always,
    book,
    deadline,
    in_turn,
    looked_up,
    never,
    num_tokens,
    passages,
    question,
    run,
    scripted,
)

PAGES = [f"Page text {n} of the {name} bell.\n" for n, name in enumerate("abcdefg")]
GISTS = [f"gist {n}" for n in range(7)]
BOOK = book(PAGES, GISTS, [question()])


BUDGETS = {"look_up_p": 30, "answer": 40}  # reply tokens


def parallel(max_pages: int, first_page: Literal[0, 1] = 0) -> ReadAgentP:
    return ReadAgentP(max_pages=max_pages, first_page=first_page)


def one(stage: ReadAgentP, reply: str, rows: UnitRows = BOOK) -> Lookup:
    (row,), _ = run(stage, rows, in_turn(reply))
    assert isinstance(row, Lookup)
    return row


def test_the_example_of_the_design() -> None:
    row = one(parallel(2), "I want to look up Page [5, 2, 9, 5, 1] to find the bell")
    assert row == Lookup(
        document_id="d",
        question_id="q",
        turn=0,
        requested=(5, 2, 9, 5, 1),
        used=(5, 2),
        dropped=(Dropped(9, "out_of_range"), Dropped(5, "duplicate"), Dropped(1, "over_maximum")),
    )


def test_a_reply_without_a_page_leaves_the_gists() -> None:
    assert one(parallel(2), "The gists are enough.") == looked_up()
    for reply in ("[7 to 12]", "<think>Page [3]"):
        assert one(parallel(2), reply) == looked_up(problem="unparseable")


def test_rows_hold_indexes_where_the_family_counts_from_1() -> None:
    row = one(parallel(3, first_page=1), "I want to look up Page [1, 7, 8, 0]")
    assert row.requested == (0, 6, 7, -1)
    assert row.used == (0, 6)
    assert row.dropped == (Dropped(7, "out_of_range"), Dropped(-1, "out_of_range"))


def test_the_gist_memory_is_shown_with_the_family_s_numbers() -> None:
    engine = in_turn("[]")
    run(parallel(4, first_page=1), BOOK, engine)
    (prompt,) = engine.prompts()
    memory = "".join(f"<Page {n + 1}>\ngist {n}\n\n" for n in range(7))
    assert f"{memory}Question: Who rang the bell?" in prompt
    assert "4 at most" in prompt
    assert "Page text" not in prompt


@pytest.mark.parametrize(
    ("rule", "used", "problem"),
    [
        ({"finish_reason": "length", "reply": "Let me think about"}, (), "truncated"),
        ({"finish_reason": "length", "reply": "look up Page [3, 1] since"}, (3, 1), None),
        ({"finish_reason": "length", "reply": "look up Page [3, 1"}, (), "truncated"),
        ({"finish_reason": "length", "reply": "look up Page [] since"}, (), None),
        ({"finish_reason": "length", "reply": "look up Page 3 and Page 1"}, (), "truncated"),
        ({"finish_reason": "length", "reply": "No page is needed, as"}, (), "truncated"),
        ({"finish_reason": "length", "reply": "<think>Page [3]? Or"}, (), "truncated"),
        ({"finish_reason": "abort", "reply": "look up Page [3]"}, None, "engine_failed"),
        ({"hang": True}, None, "timeout"),
    ],
)
def test_cut_and_missing_replies(
    tmp_path: Path, rule: dict[str, Any], used: tuple[int, ...] | None, problem: str | None
) -> None:
    (row,), _ = run(parallel(2), BOOK, scripted(tmp_path, rule), deadline_seconds=deadline(rule))
    assert (row.used, row.problem) == (used, problem)


@pytest.mark.parametrize(
    ("budget", "used", "reasons"),
    [
        # Six gists of a word. A page has 10 words more than its gist, page 4 only one.
        (15, (), "3 no_room, 1 no_room, 9 out_of_range, 4 no_room"),
        (16, (3,), "1 no_room, 9 out_of_range, 4 no_room"),
        (26, (3, 1), "9 out_of_range, 4 no_room"),
        (27, (3, 1, 4), "9 out_of_range"),
    ],
)
def test_gists_and_pages_stay_within_a_budget(
    budget: int, used: tuple[int, ...], reasons: str
) -> None:
    pages = ["word " * (2 if n == 4 else 11) for n in range(6)]
    stage = ReadAgentP(max_pages=5, first_page=0, budget=budget)
    row = one(stage, "Page [3, 1, 9, 4]", book(pages, ["gist"] * 6, [question()]))
    assert row.used == used
    assert ", ".join(f"{drop.page_index} {drop.reason}" for drop in row.dropped) == reasons


def test_gists_that_are_over_the_budget_are_not_asked_about() -> None:
    made, calls = run(ReadAgentP(max_pages=5, first_page=0, budget=13), BOOK, never())
    assert (made, calls) == ([looked_up()], ())  # the answer says why


def test_a_gist_memory_that_does_not_fit_is_not_asked_about() -> None:
    tokens = num_tokens(ParallelLookUp(passages(BOOK, ()), "Who rang the bell?", (), 2))
    enough, _ = run(parallel(2), BOOK, always("[]", tokens + 30), reply_tokens=BUDGETS)
    assert enough == [looked_up()]
    made, calls = run(parallel(2), BOOK, always("[]", tokens + 29), reply_tokens=BUDGETS)
    assert made == [looked_up(used=None, requested=(), problem="context_overflow")]
    assert calls == ()


@pytest.mark.parametrize(
    ("room", "used", "reasons"),
    [
        # Page n has 10 words more than its gist, page 4 only one.
        (9, (), "3 no_room, 1 no_room, 9 out_of_range, 4 no_room, 3 no_room"),
        (10, (3,), "1 no_room, 9 out_of_range, 4 no_room, 3 duplicate"),
        (20, (3, 1), "9 out_of_range, 4 no_room, 3 duplicate"),
        (21, (3, 1, 4), "9 out_of_range, 3 duplicate"),
    ],
)
def test_pages_are_taken_until_the_first_without_room(
    room: int, used: tuple[int, ...], reasons: str
) -> None:
    pages = ["word " * (2 if n == 4 else 11) for n in range(6)]
    rows = book(pages, ["gist"] * 6, [question()])
    tokens = num_tokens(ParallelLookUp(passages(rows, ()), "Who rang the bell?", (), 5))
    engine = always("I want to look up Page [3, 1, 9, 4, 3]", tokens + 40 + room)
    (row,), calls = run(parallel(5), rows, engine, reply_tokens=BUDGETS)
    assert row.used == used
    assert ", ".join(f"{drop.page_index} {drop.reason}" for drop in row.dropped) == reasons
    assert row.problem is None
    assert len(calls) == 1


def test_the_longer_of_look_up_and_answer_reply_stays_free() -> None:
    tokens = num_tokens(ParallelLookUp(passages(BOOK, (2,)), "Who rang the bell?", (), 5))
    for answer_tokens, room in ((40, 40), (20, 30)):
        budgets = {"look_up_p": 30, "answer": answer_tokens}
        (fits,), (full,) = (
            run(parallel(5), BOOK, always("[2]", tokens + left), reply_tokens=budgets)[0]
            for left in (room, room - 1)
        )
        assert (fits.used, full.used) == ((2,), ())


def test_every_question_has_its_turn_in_question_order(tmp_path: Path) -> None:
    questions = [question("b", "Where?"), question("a", "When?"), question("c", "Why?")]
    rows = replace(BOOK, questions=tuple(questions))
    engine = scripted(
        tmp_path,
        {"match": "Where", "reply": "[1]", "seconds": 0.05},
        {"match": "When", "reply": "[2]"},
        {"reply": "none"},
    )
    made, calls = run(parallel(2), rows, engine)
    assert [(row.question_id, row.turn, row.used) for row in made] == [
        ("b", 0, (1,)), ("a", 0, (2,)), ("c", 0, ()),
    ]  # fmt: skip
    assert [(call.question_id, call.turn) for call in calls] == [("a", 0), ("b", 0), ("c", 0)]
