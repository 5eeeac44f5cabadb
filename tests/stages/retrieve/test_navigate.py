"""Navigation by hand: every step of every walk through a tree of four segments, the segments looked
up, the answer that it leaves, and what is measured of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import Span, UnitRows
from stages.index.tree import BuildTree
from stages.prompts.memwalker import ReadLeaf
from stages.read.answer_kinds import AnswerFromVisits
from stages.retrieve.look_up import VisitedLeaves
from stages.retrieve.navigate import Navigate
from stages.tables.lookups import Dropped, Lookup, Visit
from stages.tables.pages import Node
from tests.pipeline.store.test_views import rows
from tests.support.reading import (
    Listener,
    adding,
    book,
    content,
    in_turn,
    looked_up,
    never,
    num_tokens,
    question,
    run,
    scripted,
)
from tests.support.runs import warehouse as by_hand

PAGES = [f"Segment {name} of the text.\n" for name in "abcd"]
OPTIONS = ("the sexton", "nobody", "a child", "the wind")
ANSWER = "Reasoning: it says so\nAction: -2\nAnswer: (C) a child"
BUDGETS = {"triage": 5, "read_leaf": 30}
MEMORY = "\n\n".join(f"summary {name}" for name in "abcdcd")
ENTERED = [(6, "enter", 5), (5, "enter", 2)]  # down to c


def tree(
    pages: Sequence[str] = PAGES, max_children: int = 2, options: tuple[str, ...] = OPTIONS
) -> UnitRows:
    """Segments are nodes 0 to 3, with summaries `summary a` to `summary d`, which are joined above:
    4 is the parent of 0 and 1, 5 of 2 and 3; 6 is the root."""
    rows = book(pages, questions=[question(options=options)])
    engine = Listener(lambda request: f"summary {content(request).split()[-4]}")
    stage = BuildTree(max_children=max_children, node_words=1000, question_tokens=256)
    return adding(rows, {Node: run(stage, rows, engine)[0]})


def wide() -> UnitRows:
    return tree(PAGES[:3], 3, ())


def stage(**settings: Any) -> Navigate:
    own: dict[str, Any] = {
        "reasoning": True, "working_memory": "visited", "keep_memory": "last",
        "name_rejected": True, "may_revert": False, "all_rejected": "stop", "max_steps": 50,
        "answer_words": 9,
    }  # fmt: skip
    return Navigate(**{**own, **settings})


def walked(*replies: str, rows: UnitRows | None = None, **settings: Any) -> list[Visit]:
    """The visits made of these replies; one request more, or one less, than that fails."""
    engine = in_turn(*replies)
    made, _ = run(stage(**settings), rows or tree(), engine)
    assert len(engine.requests) == len(replies)
    return made


def path(made: Sequence[Visit]) -> list[tuple[int | None, str | None, int | None]]:
    return [(visit.node_index, visit.action, visit.to_node) for visit in made]


def act(action: int) -> str:
    return f"Reasoning: why\nAction: {action}"


def test_straight_down_and_what_the_model_sees_on_the_way() -> None:
    engine = in_turn(act(1), act(0), ANSWER)
    made, _ = run(stage(), tree(), engine)
    assert path(made) == [*ENTERED, (2, "answer", None)]
    # Summaries of two words; the first level's are two joined. A segment has five.
    # The root's summary is in the memory alone.
    assert [(v.depth, v.page_index, v.reason, v.num_new_words) for v in made] == [
        (0, None, "why", 8), (1, None, "why", 4), (2, 2, "it says so", 5 + 8),
    ]  # fmt: skip
    assert {(v.num_replies, v.num_invalid, v.reader) for v in made} == {(1, 0, "listener")}
    assert (made[-1].answer, made[-1].answer_index) == ("(C) a child", 2)
    root, inner, leaf = prompts = engine.prompts()
    assert all("\nReasoning: " in prompt for prompt in prompts)
    assert "Summary 0: summary a\n\nsummary b\n\nSummary 1: summary c\n\nsummary d\n\n" in root
    assert "Summary 0: summary c\n\nSummary 1: summary d\n\n" in inner
    assert "the sexton" not in root and "(A) the sexton" in leaf
    assert "Segment c of the text." in leaf and "Segment d" not in leaf
    assert leaf.startswith("What is known of the rest of the text:\n\nsummary a\n\nsummary b\n\n")
    engine = in_turn("Action: 1", "Action: 0", "Action: -2\nAnswer: (A)")
    made, _ = run(stage(reasoning=False), tree(), engine)
    assert not any("Reasoning" in prompt for prompt in engine.prompts())
    assert [visit.reason for visit in made] == [None] * 3


def test_stray_and_recovery() -> None:
    """From c back to 5, where d is left alone: entered without a call; from there to the root,
    where 4 is left alone; there a is chosen, in vain, and b is left alone."""
    made = walked(act(1), act(0), act(-1), act(-1), act(0), act(-1), ANSWER)
    assert path(made) == [
        *ENTERED, (2, "revert", 5), (5, "enter", 3), (3, "revert", 5), (5, "revert", 6),
        (6, "enter", 4), (4, "enter", 0), (0, "revert", 4), (4, "enter", 1), (1, "answer", None),
    ]  # fmt: skip
    by_rule = {visit.turn: visit.rejected for visit in made if visit.chosen_by == "rule"}
    assert by_rule == {3: (2,), 5: (2, 3), 6: (5,), 9: (0,)}
    assert [visit.num_new_words for visit in made] == [8, 4, 5 + 8, 0, 5, 0, 0, 4, 5, 0, 5]


def test_a_rejected_child_is_named_and_no_legal_action() -> None:
    engine = in_turn(act(1), act(-1), act(1), act(2), "Action: -2\nAnswer: The wind,\nsaid she.")
    made, calls = run(stage(), wide(), engine)
    assert path(made) == [(3, "enter", 1), (1, "revert", 3), (3, "enter", 2), (2, "answer", None)]
    assert (made[2].num_replies, made[2].num_invalid, made[2].rejected) == (2, 1, (1,))
    assert [(call.turn, call.attempt) for call in calls] == [(0, 1), (1, 1), (2, 1), (2, 2), (3, 1)]
    prompts = enumerate(engine.prompts())
    said = [(n, "valid action so far: 1" in p) for n, p in prompts if "choose another: 1\n" in p]
    assert said == [(2, False), (3, True)]
    assert made[-1].answer == "The wind,\nsaid she."


def test_children_need_not_be_named_where_they_were_rejected() -> None:
    """It goes round until its maximum of steps."""
    engine = in_turn(act(1), act(-1), act(1), act(-1), act(1))
    made, _ = run(stage(name_rejected=False, max_steps=5), wide(), engine)
    assert path(made) == [(3, "enter", 1), (1, "revert", 3)] * 2 + [(3, "enter", 1)]
    assert not any("choose another" in prompt for prompt in engine.prompts())
    assert [visit.num_new_words for visit in made] == [6, 5 + 6, 0, 0, 0]


def test_inner_nodes_may_revert_but_not_the_root() -> None:
    """-1 at the root is no legal action; at node 5 it is one, and 4 is then left alone."""
    engine = in_turn(act(-1), act(1), act(-1), act(0), ANSWER)
    made, _ = run(stage(may_revert=True), tree(), engine)
    assert path(made) == [
        (6, "enter", 5), (5, "revert", 6), (6, "enter", 4), (4, "enter", 0), (0, "answer", None),
    ]  # fmt: skip
    assert made[0].num_invalid == 1 and made[2].chosen_by == "rule"
    offered = [n for n, prompt in enumerate(engine.prompts()) if "or -1 to go back" in prompt]
    assert offered == [2, 3]


def test_a_document_without_text_has_no_tree_and_a_single_segment_is_root_and_leaf() -> None:
    (visit,) = walked(rows=tree([]))
    assert (visit.problem, visit.why_unusable()) == ("empty_input", "navigate: empty_input")
    rows = tree(PAGES[:1])
    assert path(walked(ANSWER, rows=rows)) == [(0, "answer", None)]
    for setting in ("stop", "start_over"):
        assert path(walked(act(-1), rows=rows, all_rejected=setting)) == [(0, "revert", None)]


def test_at_the_root_nothing_is_left_and_it_stops_or_starts_over() -> None:
    replies = [act(0), act(-1), act(1), act(-1), act(-1)]
    made = walked(*replies, rows=wide())
    assert path(made)[-2:] == [(2, "revert", 3), (3, "revert", None)]
    again = walked(*replies, act(2), ANSWER, rows=wide(), all_rejected="start_over")
    assert path(again)[-3:] == [(3, "revert", 3), (3, "enter", 2), (2, "answer", None)]
    assert again[-2].rejected == ()


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


def read(visits: Sequence[Visit]) -> tuple[Lookup, Any]:
    rows = adding(tree(), {Visit: visits})
    (lookup,), _ = run(VisitedLeaves(), rows, never())
    stage = AnswerFromVisits(first_page=0, answer_words=9, answer_page_tags=True)
    (answer,), _ = run(stage, adding(rows, {Lookup: [lookup]}), never())
    return lookup, answer


def test_the_answer_is_the_leaf_s_reply() -> None:
    lookup, answer = read(walked(act(1), act(0), act(-1), ANSWER))
    assert lookup == looked_up(3, requested=(2, 3), dropped=(Dropped(2, "rejected"),))
    assert (answer.answer, answer.answer_index, answer.problem) == ("(C) a child", 2, None)
    assert (answer.page_indexes, answer.num_lookups, answer.reader) == ((3,), 1, "listener")
    assert answer.context_spans == (Span(3 * len(PAGES[0]), 4 * len(PAGES[0])),)
    # Five words of the segment; eight of the root, four of node 5, two of c's summary.
    assert (answer.num_context_words, answer.num_context_tokens) == (5 + 14, 19)
    assert answer.compression_rate == 100 * (1 - 19 / 20)
    _, answer = read(walked(act(1), act(0), "Action: -2\nAnswer: (K)"))
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
    lookup, answer = read(walked(*replies, **settings))
    assert (answer.answer, answer.problem, answer.detail) == (None, problem, detail)
    assert (answer.compression_rate, lookup.used) == (None, ())


def test_a_navigation_that_failed_leaves_its_question_upstream() -> None:
    lookup, answer = read(stage().failed(tree(), "unit_failed", "why"))
    lost = None, "upstream", "navigate: unit_failed"
    assert (lookup.used, lookup.problem, lookup.detail) == lost
    assert (answer.problem, answer.detail) == ("upstream", f"{lost[2]}, look_up: upstream")


def test_working_memory_is_of_the_path_or_of_all_that_was_visited_or_none() -> None:
    """Sections 5 and 3. Into c's parent, back at c and d, into a."""
    replies = (act(1), act(0), act(-1), act(-1), act(0), ANSWER)
    both = ["summary a\n\nsummary b", "summary c\n\nsummary d"]
    root = "\n\n".join(both)
    visited = [root, both[1], "summary c", "summary d", both[0]]
    for which, shown in {"path": [root, both[0]], "visited": visited, "none": []}.items():
        engine = in_turn(*replies)
        made, _ = run(stage(working_memory=which), tree(), engine)
        memory, _, _ = engine.prompts()[-1].partition("One part of the text, in full:")
        assert memory.partition("text:\n\n")[2].strip() == "\n\n".join(shown)
        assert made[-1].num_memory_words == sum(len(text.split()) for text in shown)


@pytest.mark.parametrize(
    ("less", "keep", "shown"),
    [
        (0, "last", MEMORY), (1, "last", MEMORY.removeprefix("summary ")),
        (9, "last", "c\n\nsummary d"), (9, "first", "summary a\n\nsummary"), (12, "last", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_budget", [True, False])
def test_working_memory_is_cut_to_what_fits(
    by_budget: bool, less: int, keep: str, shown: str
) -> None:
    """Beside a segment of 5 words of a memory of 12 the oldest are left out, or the latest; there
    is room for being asked a third time."""
    leaf = ReadLeaf(PAGES[2].strip(), question().question, OPTIONS, True, 9, MEMORY, "", 2)
    context = {} if by_budget else {"context_tokens": num_tokens(leaf) + 30 - less}
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
    rows = tree([*PAGES[:2], PAGES[2] + "word " * 100, PAGES[3]])
    made, _ = run(stage(), rows, engine, reply_tokens=BUDGETS)
    assert (made[-1].problem, made[-1].num_replies) == ("context_overflow", 0)


def test_no_reply_ends_it(tmp_path: Path) -> None:
    engine = scripted(tmp_path, {"match": "in full:", "hang": True}, {"reply": "Action: 1"})
    made, _ = run(stage(), tree(), engine, deadline_seconds=1.0)
    assert path(made) == [(6, "enter", 5), (5, "enter", 3), (3, None, None)]
    assert made[-1].problem == "timeout"


# Of each walk its visits (action, depth, replies, how many of these are not legal, words that are
# new), its answer, and by hand its measures.
Visits = list[tuple[str | None, int, int, int, int]]
WALKS: dict[str, tuple[Visits, dict[str, Any], tuple[float | None, ...]]] = {
    # Straight down, right: two replies, both legal; 30 of 100 words.
    "down": ([("enter", 0, 1, 0, 20), ("answer", 1, 1, 0, 10)], {"answer_index": 1},
             (100, 0, None, 30, 30, 2, 1)),
    # Reverted once and answered right; of five replies two were not legal; 65 words.
    "stray": ([("enter", 0, 2, 1, 20), ("revert", 1, 1, 0, 25), ("enter", 0, 0, 0, 0),
               ("answer", 1, 2, 1, 20)], {"answer_index": 1}, (60, 100, 100, 65, 65, 4, 1)),
    # Reverted and answered wrong.
    "wrong": ([("revert", 2, 1, 0, 50), ("answer", 1, 1, 0, 50)], {"answer_index": 0},
              (100, 100, 0, 100, None, 2, 2)),
    # Three replies without a legal action: no answer.
    "bad": ([(None, 0, 3, 3, 0)], {"answer": None, "problem": "unparseable"},
            (0, 0, None, 0, None, 1, 0)),
    # A free-form question reverted on: whether it was right is no matter of letters.
    "free": ([("revert", 1, 1, 0, 10), ("answer", 3, 1, 0, 0)], {},
             (100, 100, None, 10, None, 2, 3)),
    # The engine never replied.
    "lost": ([(None, 0, 0, 0, 0)], {"answer": None, "problem": "timeout"}, (None,) * 7),
}  # fmt: skip
MEASURES = "valid_actions", "stray", "recovery", "text_read", "text_read_right", "steps", "depth"


def test_measures_by_hand(tmp_path: Path) -> None:
    visits = [
        Visit(document_id="d1", question_id=name, turn=turn, node_index=turn, action=action,
              depth=depth, num_replies=replies, num_invalid=invalid, num_new_words=words,
              problem=said.get("problem"))
        for name, (walk, said, _) in WALKS.items()
        for turn, (action, depth, replies, invalid, words) in enumerate(walk)
    ]  # fmt: skip
    choice: dict[str, Any] = {"options": ("a", "b"), "references": ("b",), "answer_index": 1}
    asked = [by_hand.question(name, **({} if name == "free" else choice)) for name in WALKS]
    answers = [by_hand.answer(name, **said) for name, (_, said, _) in WALKS.items()]
    warehouse, planned = by_hand.Warehouse(tmp_path), []
    of_document = [by_hand.document(text="word " * 100, num_words=100)]
    for table, method, made in (("documents", None, of_document), ("questions", None, asked),
                                ("visits", "memwalker", visits),
                                ("answers", "memwalker", answers)):  # fmt: skip
        step = by_hand.step(table, method)
        of_questions = by_hand.chunk(step, "d1", *WALKS)
        unit = by_hand.document_unit(step, "d1") if table == "documents" else of_questions
        warehouse.commit(step, unit, made)
        planned.append((step, [unit]))
    warehouse.plan("r", *planned)
    found = rows(warehouse, "select question_id, measure, value, problem from measures")
    assert {(row["question_id"], row["measure"]): row["value"] for row in found
            if row["measure"] in MEASURES} == {
        (name, measure): value for name, (_, _, values) in WALKS.items()
        for measure, value in zip(MEASURES, values, strict=True) if value is not None
    }  # fmt: skip
    problems = {(row["question_id"], row["problem"]) for row in found if row["problem"]}
    assert problems == {("bad", "unparseable")}
