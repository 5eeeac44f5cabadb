"""What the model is shown on its way through a tree, and what becomes of missing replies."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import Problem
from stages.prompts.memwalker import ReadLeaf
from tests.support.engines.walks import ANSWER, OPTIONS, PAGES, act, path, stage, tree, walked
from tests.support.reading import deadline, in_turn, num_tokens, run, scripted


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


def test_without_reasoning_none_is_asked_for() -> None:
    engine = in_turn("Action: 1", "Action: 0", "Action: -2\nAnswer: (A)")
    made, _ = run(stage(reasoning=False), tree(), engine)
    assert not any("Reasoning" in prompt or "Weigh" in prompt for prompt in engine.prompts())
    assert [visit.reason for visit in made] == [None] * 3


def test_working_memory_is_of_the_path_or_of_all_that_was_visited_or_none() -> None:
    """Sections 5 and 3. Into c's parent, back at c and d, into a."""
    replies = (act(1), act(0), act(-1), act(-1), act(0), ANSWER)
    both = ["summary a\n\nsummary b", "summary c\n\nsummary d"]
    root = "\n\n".join(both)
    memories = {
        "path": [root, both[0]],
        "visited": [root, both[1], "summary c", "summary d", both[0]],
    }
    for which, shown in memories.items():
        engine = in_turn(*replies)
        made, _ = run(stage(working_memory=which), tree(), engine)
        memory = engine.prompts()[-1].split("\n\nOne part of the text")[0].split("text:\n\n")[1]
        assert memory == "\n\n".join(shown)
        assert made[-1].num_memory_words == sum(len(text.split()) for text in shown)
    engine = in_turn(*replies)
    made, _ = run(stage(working_memory="none"), tree(), engine)
    assert engine.prompts()[-1].startswith("One part of the text, in full:\n\nSegment a")
    assert made[-1].num_memory_words == 0


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
