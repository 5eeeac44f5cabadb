"""Navigation by hand: every step of every walk (the tree: tests/support/engines/walks.py), and the
segments looked up and the answer that it leaves.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import Problem
from pipeline.core.rows import UnitRows
from stages.prompts.memwalker import ReadLeaf
from stages.read.answer_kinds import AnswerFromVisits
from stages.retrieve.look_up import VisitedLeaves
from stages.retrieve.navigate import COLUMNS
from stages.tables.lookups import Dropped, Lookup, Visit
from stages.tables.pages import Node
from tests.pipeline.store.test_views import rows
from tests.support.engines.walks import ANSWER, OPTIONS, PAGES, act, path, stage, tree, walked, wide
from tests.support.reading import (
    adding,
    deadline,
    in_turn,
    looked_up,
    never,
    num_tokens,
    run,
    scripted,
)
from tests.support.runs.warehouse import (
    Warehouse,
    answer,
    chunk,
    document,
    document_unit,
    question,
    step,
)


def test_straight_down() -> None:
    made = walked(act(1), act(0), ANSWER)
    assert path(made) == [(6, "enter", 5), (5, "enter", 2), (2, "answer", None)]
    assert [(visit.depth, visit.page_index) for visit in made] == [(0, None), (1, None), (2, 2)]
    assert [visit.reason for visit in made] == ["why", "why", "it says so"]
    assert [(visit.num_replies, visit.num_invalid) for visit in made] == [(1, 0)] * 3
    # Summaries of two words; the first level's are two joined. A segment has five.
    # The root's summary is in the memory alone.
    assert [visit.num_new_words for visit in made] == [8, 4, 5 + 8]
    assert (made[-1].answer, made[-1].answer_index) == ("(C) a child", 2)
    assert {visit.reader for visit in made} == {"listener"}


def test_stray_and_recovery() -> None:
    """From c back to 5, where d is left alone: entered without a call; from there to the root,
    where 4 is left alone; there a is chosen, in vain, and b is left alone."""
    made = walked(act(1), act(0), act(-1), act(-1), act(0), act(-1), ANSWER)
    assert path(made) == [
        (6, "enter", 5), (5, "enter", 2), (2, "revert", 5),
        (5, "enter", 3), (3, "revert", 5), (5, "revert", 6),
        (6, "enter", 4), (4, "enter", 0), (0, "revert", 4), (4, "enter", 1), (1, "answer", None),
    ]  # fmt: skip
    by_rule = [visit.turn for visit in made if visit.chosen_by == "rule"]
    assert by_rule == [3, 5, 6, 9]
    assert [visit.rejected for visit in made if visit.chosen_by == "rule"] == [
        (2,), (2, 3), (5,), (0,),
    ]  # fmt: skip
    assert [visit.num_new_words for visit in made] == [8, 4, 5 + 8, 0, 5, 0, 0, 4, 5, 0, 5]


def test_a_rejected_child_is_named_and_no_legal_action() -> None:
    engine = in_turn(act(1), act(-1), act(1), act(2), "Action: -2\nAnswer: The wind,\nsaid she.")
    made, calls = run(stage(), wide(), engine)
    assert path(made) == [(3, "enter", 1), (1, "revert", 3), (3, "enter", 2), (2, "answer", None)]
    assert (made[2].num_replies, made[2].num_invalid, made[2].rejected) == (2, 1, (1,))
    assert [(call.turn, call.attempt) for call in calls] == [(0, 1), (1, 1), (2, 1), (2, 2), (3, 1)]
    assert ["choose another: 1\n" in prompt for prompt in engine.prompts()] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert ["valid action so far: 1" in p for p in engine.prompts()] == [False] * 3 + [True, False]
    assert made[-1].answer == "The wind,\nsaid she."


def test_children_need_not_be_named_where_they_were_rejected() -> None:
    """It goes round until its maximum of steps."""
    engine = in_turn(act(1), act(-1), act(1), act(-1), act(1))
    made, _ = run(stage(name_rejected=False, max_steps=5), wide(), engine)
    assert path(made) == [(3, "enter", 1), (1, "revert", 3)] * 2 + [(3, "enter", 1)]
    assert not any("choose another" in prompt for prompt in engine.prompts())
    assert [visit.num_new_words for visit in made] == [6, 5 + 6, 0, 0, 0]


def test_at_the_root_nothing_is_left_and_it_stops_or_starts_over() -> None:
    replies = [act(0), act(-1), act(1), act(-1), act(-1)]
    made = walked(*replies, rows=wide())
    assert path(made)[-2:] == [(2, "revert", 3), (3, "revert", None)]
    again = walked(*replies, act(2), ANSWER, rows=wide(), all_rejected="start_over")
    assert path(again)[-3:] == [(3, "revert", 3), (3, "enter", 2), (2, "answer", None)]
    assert again[-2].rejected == ()


def test_inner_nodes_may_revert_but_not_the_root() -> None:
    """-1 at the root is no legal action; at node 5 it is one, and 4 is then left alone."""
    engine = in_turn(act(-1), act(1), act(-1), act(0), ANSWER)
    made, _ = run(stage(may_revert=True), tree(), engine)
    assert path(made) == [
        (6, "enter", 5), (5, "revert", 6), (6, "enter", 4), (4, "enter", 0), (0, "answer", None),
    ]  # fmt: skip
    assert made[0].num_invalid == 1 and made[2].chosen_by == "rule"
    assert ["or -1 to go back" in prompt for prompt in engine.prompts()] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_a_document_without_text_has_no_tree_and_a_single_segment_is_root_and_leaf() -> None:
    (visit,) = walked(rows=tree(pages=[]))
    assert (visit.problem, visit.why_unusable()) == ("empty_input", "navigate: empty_input")
    rows = tree(pages=PAGES[:1])
    assert path(walked(ANSWER, rows=rows)) == [(0, "answer", None)]
    for setting in ("stop", "start_over"):
        assert path(walked(act(-1), rows=rows, all_rejected=setting)) == [(0, "revert", None)]


@pytest.mark.parametrize(
    "bad", ["Perhaps the second.", "Action: 7", "Action: -2\nAnswer: (A)", "Action: 0 / 1", ""]
)
def test_three_bad_replies_in_a_row_end_it(bad: str) -> None:
    made = walked(act(1), bad, bad, bad)
    assert path(made) == [(6, "enter", 5), (5, None, None)]
    assert path(walked("Hm.", "Hm.", act(1), act(0), ANSWER))[0] == (6, "enter", 5)
    assert (made[1].num_replies, made[1].num_invalid, made[1].problem) == (3, 3, "unparseable")
    assert made[1].why_unusable() is None


def test_a_node_without_a_summary_is_not_offered() -> None:
    rows = tree()
    made = list(rows[Node])
    made[2] = replace(made[2], summary=None, problem="timeout")
    found = walked(act(1), ANSWER, rows=adding(rows, {Node: made}))
    assert path(found) == [(6, "enter", 5), (5, "enter", 3), (3, "answer", None)]


FROM_VISITS = AnswerFromVisits(first_page=0, answer_words=9, answer_page_tags=True)


def read(
    *replies: str, rows: UnitRows | None = None, **settings: Any
) -> tuple[list[Lookup], list[Any]]:
    """The look-ups and answers of a navigation."""
    rows = rows or tree()
    rows = adding(rows, {Visit: walked(*replies, rows=rows, **settings)})
    lookups, _ = run(VisitedLeaves(), rows, never())
    answers, calls = run(FROM_VISITS, adding(rows, {Lookup: lookups}), never())
    assert calls == ()
    return lookups, answers


def test_the_answer_is_the_leaf_s_reply() -> None:
    lookups, (answer,) = read(act(1), act(0), act(-1), ANSWER)
    assert lookups == [looked_up(3, requested=(2, 3), dropped=(Dropped(2, "rejected"),))]
    assert (answer.answer, answer.answer_index, answer.problem) == ("(C) a child", 2, None)
    assert (answer.page_indexes, answer.num_lookups, answer.reader) == ((3,), 1, "listener")
    start = len("".join(PAGES[:3]))
    assert [(s.start_char, s.end_char) for s in answer.context_spans] == [
        (start, start + len(PAGES[3]))
    ]
    # Five words of the segment; eight of the root, four of node 5, two of c's summary.
    assert (answer.num_context_words, answer.num_context_tokens) == (5 + 14, 19)
    assert answer.compression_rate == 100 * (1 - 19 / 20)
    _, (answer,) = read(act(1), act(0), "Action: -2\nAnswer: (K)")
    assert (answer.answer, answer.answer_index, answer.problem) == ("(K)", None, "out_of_range")


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


def test_a_navigation_that_failed_leaves_its_question_upstream() -> None:
    rows = tree()
    visits = stage().failed(rows, "unit_failed", "why")
    stage().check(rows, visits)
    rows = adding(rows, {Visit: visits})
    lookups, _ = run(VisitedLeaves(), rows, never())
    assert [(row.used, row.problem, row.detail) for row in lookups] == [
        (None, "upstream", "navigate: unit_failed")
    ]
    (answer,), _ = run(FROM_VISITS, adding(rows, {Lookup: lookups}), never())
    assert (answer.problem, answer.detail) == (
        "upstream", "navigate: unit_failed, look_up: upstream",
    )  # fmt: skip


def test_what_the_model_sees_on_the_way() -> None:
    engine = in_turn(act(1), act(0), ANSWER)
    run(stage(), tree(), engine)
    root, inner, leaf = engine.prompts()
    assert "Summary 0: summary a\n\nsummary b\n\nSummary 1: summary c\n\nsummary d\n\n" in root
    assert "Summary 0: summary c\n\nSummary 1: summary d\n\n" in inner
    assert "the sexton" not in root and "(A) the sexton" in leaf
    assert "Segment c of the text." in leaf and "Segment d" not in leaf
    both = "summary c\n\nsummary d"
    assert leaf.startswith(
        f"What is known of the rest of the text:\n\nsummary a\n\nsummary b\n\n{both}\n\n{both}\n\n"
    )
    assert all("\nReasoning: " in prompt for prompt in engine.prompts())
    engine = in_turn("Action: 1", "Action: 0", "Action: -2\nAnswer: (A)")
    made, _ = run(stage(reasoning=False), tree(), engine)
    assert not any("Reasoning" in prompt for prompt in engine.prompts())
    assert [visit.reason for visit in made] == [None] * 3


def test_working_memory_is_of_the_path_or_of_all_that_was_visited_or_none() -> None:
    """Sections 5 and 3. Into c's parent, back at c and d, into a."""
    replies = (act(1), act(0), act(-1), act(-1), act(0), ANSWER)
    both = ["summary a\n\nsummary b", "summary c\n\nsummary d"]
    root = "\n\n".join(both)
    memories = {
        "path": [root, both[0]],
        "visited": [root, both[1], "summary c", "summary d", both[0]],
        "none": [],
    }
    for which, shown in memories.items():
        engine = in_turn(*replies)
        made, _ = run(stage(working_memory=which), tree(), engine)
        memory, _, _ = engine.prompts()[-1].partition("One part of the text, in full:")
        assert memory.partition("text:\n\n")[2].strip() == "\n\n".join(shown)
        assert made[-1].num_memory_words == sum(len(text.split()) for text in shown)


BUDGETS = {"triage": 5, "read_leaf": 30}


def leaf_tokens(memory: str) -> int:
    """Of the leaf prompt of segment c when it is asked for the third time."""
    text = PAGES[2].strip()
    return num_tokens(ReadLeaf(text, "Who rang the bell?", OPTIONS, True, 9, memory, "", 2))


@pytest.mark.parametrize(
    ("less", "keep", "shown"),
    [
        (0, "last", "summary a\n\nsummary b\n\nsummary c\n\nsummary d\n\nsummary c\n\nsummary d"),
        (1, "last", "a\n\nsummary b\n\nsummary c\n\nsummary d\n\nsummary c\n\nsummary d"),
        (9, "last", "c\n\nsummary d"),
        (9, "first", "summary a\n\nsummary"),
        (12, "last", ""),
    ],
)
@pytest.mark.parametrize("by_budget", [True, False])
def test_working_memory_is_cut_to_what_fits(
    by_budget: bool, less: int, keep: str, shown: str
) -> None:
    """Beside a segment of 5 words of a memory of 12 the oldest are left out, or the latest."""
    whole = "summary a\n\nsummary b\n\nsummary c\n\nsummary d\n\nsummary c\n\nsummary d"
    context = {} if by_budget else {"context_tokens": leaf_tokens(whole) + 30 - less}
    limited = stage(keep_memory=keep, budget=17 - less if by_budget else None)
    engine = in_turn(act(1), act(0), ANSWER, **context)
    made, _ = run(limited, tree(), engine, reply_tokens=BUDGETS)
    assert (f"rest of the text:\n\n{shown}\n\nOne part" in engine.prompts()[2]) is bool(shown)
    assert (made[2].num_memory_words, made[2].is_memory_cut) == (12 - less, less > 0)
    # The segment's words, and what is left of the root's eight, which are in the memory alone.
    assert made[2].num_new_words == 5 + (min(12 - less, 8) if keep == "first" else 8 - min(less, 8))


def test_a_segment_over_budget_or_context_is_not_read() -> None:
    last = walked(act(1), act(0), budget=4)[-1]
    detail = "budget=4: the segment has 5 tokens; raise it"
    assert (last.problem, last.detail, last.num_replies) == ("context_overflow", detail, 0)
    assert last.why_unusable() == f"navigate: {detail}"
    engine = in_turn(act(1), act(0), context_tokens=170)
    rows = tree(pages=[*PAGES[:2], PAGES[2] + "word " * 100, PAGES[3]])
    made, _ = run(stage(), rows, engine, reply_tokens=BUDGETS)
    assert (made[-1].problem, made[-1].num_replies) == ("context_overflow", 0)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [({"finish_reason": "abort"}, "engine_failed"), ({"hang": True}, "timeout")],
)
def test_no_reply_ends_it(tmp_path: Path, rule: dict[str, Any], problem: Problem) -> None:
    engine = scripted(tmp_path, {"match": "in full:", **rule}, {"reply": "Action: 1"})
    made, _ = run(stage(), tree(), engine, deadline_seconds=deadline(rule))
    assert path(made) == [(6, "enter", 5), (5, "enter", 3), (3, None, None)]
    assert made[-1].problem == problem


METHOD = "memwalker"
VISITS, ANSWERS = step("visits", METHOD), step("answers", METHOD)
DOCUMENTS, QUESTIONS = step("documents"), step("questions")
CHOICE: dict[str, Any] = {"options": ("a", "b"), "references": ("b",), "answer_index": 1}


def visit(question_id: str, turn: int, action: str | None, **more: Any) -> Visit:
    given: dict[str, Any] = {"node_index": turn, "action": action, "num_replies": 1, **more}
    return Visit(document_id="d1", question_id=question_id, turn=turn, **given)


WALKS = {
    # Straight down, right: two replies, both legal; 30 of 100 words.
    "down": [
        visit("down", 0, "enter", num_new_words=20),
        visit("down", 1, "answer", depth=1, num_new_words=10),
    ],
    # Reverted once and answered right; of five replies two were not legal; 65 words.
    "stray": [
        visit("stray", 0, "enter", num_replies=2, num_invalid=1, num_new_words=20),
        visit("stray", 1, "revert", depth=1, num_new_words=25),
        visit("stray", 2, "enter", num_replies=0, chosen_by="rule"),
        visit("stray", 3, "answer", depth=1, num_replies=2, num_invalid=1, num_new_words=20),
    ],
    # Reverted and answered wrong.
    "wrong": [
        visit("wrong", 0, "revert", depth=2, num_new_words=50),
        visit("wrong", 1, "answer", depth=1, num_new_words=50),
    ],
    # Three replies without a legal action: no answer.
    "bad": [visit("bad", 0, None, num_replies=3, num_invalid=3, problem="unparseable")],
    # A free-form question reverted on: whether it was right is no matter of letters.
    "free": [
        visit("free", 0, "revert", depth=1, num_new_words=10),
        visit("free", 1, "answer", depth=3),
    ],
    # The engine never replied.
    "lost": [visit("lost", 0, None, num_replies=0, problem="timeout")],
}
LETTERS = {"down": 1, "stray": 1, "wrong": 0}
BY_HAND = {
    "down": {
        "valid_actions": 100, "stray": 0, "text_read": 30, "text_read_right": 30, "steps": 2,
        "depth": 1,
    },
    "stray": {
        "valid_actions": 60, "stray": 100, "recovery": 100, "text_read": 65, "text_read_right": 65,
        "steps": 4, "depth": 1,
    },
    "wrong": {
        "valid_actions": 100, "stray": 100, "recovery": 0, "text_read": 100, "steps": 2, "depth": 2,
    },
    "bad": {"valid_actions": 0, "stray": 0, "text_read": 0, "steps": 1, "depth": 0},
    "free": {"valid_actions": 100, "stray": 100, "text_read": 10, "steps": 2, "depth": 3},
}  # fmt: skip


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    problems = {"lost": "upstream", "bad": "unparseable"}
    given: dict[str, dict[str, Any]] = {
        name: {"answer": None, "problem": problems[name]} if name in problems
        else {"answer_index": LETTERS.get(name)} for name in WALKS
    }  # fmt: skip
    asked = [question(name, **({} if name == "free" else CHOICE)) for name in WALKS]
    made: list[tuple[Any, Any, list[Any]]] = [
        (DOCUMENTS, document_unit(DOCUMENTS, "d1"), [document(text="word " * 100, num_words=100)]),
        (QUESTIONS, chunk(QUESTIONS, "d1", *WALKS), asked),
        (VISITS, chunk(VISITS, "d1", *WALKS), [row for walk in WALKS.values() for row in walk]),
        (ANSWERS, chunk(ANSWERS, "d1", *WALKS), [answer(n, **of) for n, of in given.items()]),
    ]
    warehouse = Warehouse(tmp_path)
    for of_step, unit, unit_rows in made:
        warehouse.commit(of_step, unit, unit_rows)
    warehouse.plan("r", *((of_step, [unit]) for of_step, unit, _ in made))
    return warehouse


def test_measures_by_hand(warehouse: Warehouse) -> None:
    found = rows(warehouse, "select question_id, measure, value, problem from measures")
    names = {column.measure for column in COLUMNS}
    table: dict[str, dict[str, float]] = {}
    for row in [row for row in found if row["measure"] in names]:
        table.setdefault(row["question_id"], {})[row["measure"]] = row["value"]
        assert row["problem"] == ("unparseable" if row["question_id"] == "bad" else None)
    assert table == BY_HAND
