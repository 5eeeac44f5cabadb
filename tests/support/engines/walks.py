"""A tree of four segments, two a node, navigated by scripted replies. Segments are nodes 0 to 3; 4
is the parent of 0 and 1, 5 of 2 and 3; 6 is the root."""

from collections.abc import Sequence
from typing import Any

from pipeline.core.rows import Question, UnitRows
from stages.index.tree import BuildTree
from stages.retrieve.navigate import Navigate
from stages.tables.lookups import Visit
from stages.tables.pages import Node
from tests.support.reading import (
    Listener,
    adding,
    book,
    in_turn,
    question,
    run,
)

PAGES = [f"Segment {name} of the text.\n" for name in "abcd"]
OPTIONS = ("the sexton", "nobody", "a child", "the wind")
STEP = tuple[int | None, str | None, int | None]


def nodes(rows: UnitRows) -> list[Node]:
    """Their summaries: `summary a` to `summary d`, joined above."""
    engine = Listener(lambda request: f"summary {request.messages[0]['content'].split()[-4]}")
    made, _ = run(BuildTree(max_children=2, node_words=1000, question_tokens=256), rows, engine)
    return made


def tree(*questions: Question, pages: Sequence[str] = PAGES) -> UnitRows:
    rows = book(pages, questions=questions or [question(options=OPTIONS)])
    return adding(rows, {Node: nodes(rows)})


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


def path(made: Sequence[Visit]) -> list[STEP]:
    return [(visit.node_index, visit.action, visit.to_node) for visit in made]


def act(action: int) -> str:
    return f"Reasoning: why\nAction: {action}"


ANSWER = "Reasoning: it says so\nAction: -2\nAnswer: (C) a child"


def wide() -> UnitRows:
    rows = book([f"Segment {name} of the text.\n" for name in "abc"], questions=[question()])
    engine = Listener(lambda request: f"summary {request.messages[0]['content'].split()[-4]}")
    made, _ = run(BuildTree(max_children=3, node_words=1000, question_tokens=256), rows, engine)
    return adding(rows, {Node: made})
