"""The measures of navigation, worked by hand, and how `trace` shows a walk."""

from pathlib import Path
from typing import Any

import pytest

from stages.retrieve.navigate import COLUMNS
from stages.tables.lookups import Visit
from tests.pipeline.store.test_views import rows
from tests.runs.test_two_memories import queries
from tests.support.runs.warehouse import (
    Warehouse,
    answer,
    chunk,
    document,
    document_unit,
    question,
    step,
)

METHOD = "memwalker"
VISITS, ANSWERS = step("visits", METHOD), step("answers", METHOD)
DOCUMENTS, QUESTIONS = step("documents"), step("questions")
OPTIONS: dict[str, Any] = {"options": ("a", "b"), "references": ("b",), "answer_index": 1}


def visit(question_id: str, turn: int, action: str | None, **more: Any) -> Visit:
    given: dict[str, Any] = {"num_replies": 1, **more}
    return Visit(
        document_id="d1",
        question_id=question_id,
        turn=turn,
        node_index=turn,
        action=action,
        **given,
    )


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
    found = Warehouse(tmp_path)
    of, asked = document_unit(DOCUMENTS, "d1"), chunk(QUESTIONS, "d1", *WALKS)
    found.commit(DOCUMENTS, of, [document(text="word " * 100, num_words=100)])
    own = {name: {} if name == "free" else OPTIONS for name in WALKS}
    found.commit(QUESTIONS, asked, [question(name, **own[name]) for name in WALKS])
    visited, answered = chunk(VISITS, "d1", *WALKS), chunk(ANSWERS, "d1", *WALKS)
    found.commit(VISITS, visited, [row for walk in WALKS.values() for row in walk])
    found.commit(ANSWERS, answered, [_answer(name) for name in WALKS])
    found.plan(
        "r", (DOCUMENTS, [of]), (QUESTIONS, [asked]), (VISITS, [visited]), (ANSWERS, [answered])
    )
    return found


def _answer(name: str) -> Any:
    if name == "lost":
        return answer(name, answer=None, problem="upstream")
    if name == "bad":
        return answer(name, answer=None, problem="unparseable")
    return answer(name, answer_index=LETTERS.get(name))


def test_measures_by_hand(warehouse: Warehouse) -> None:
    names = ", ".join(f"'{column.measure}'" for column in COLUMNS)
    found = rows(
        warehouse,
        f"select question_id, measure, value, problem from measures where measure in ({names})",
    )
    table: dict[str, dict[str, float]] = {}
    for row in found:
        table.setdefault(row["question_id"], {})[row["measure"]] = row["value"]
    assert table == BY_HAND
    problems = {row["question_id"]: row["problem"] for row in found}
    assert problems == {**dict.fromkeys(BY_HAND, None), "bad": "unparseable"}


def test_the_sql_of_the_readme(warehouse: Warehouse) -> None:
    """Two of the four questions with letters are right, one of them after it strayed."""
    assert rows(warehouse, queries()["walks"]) == [
        {
            "method": METHOD, "n": 5, "valid_actions": 72, "stray_ratio": pytest.approx(60),
            "recovery_rate": 50, "n_recovery": 2, "text_read": pytest.approx(41),
            "text_read_if_right": 47.5, "n_right": 2, "steps": 2.2, "depth": 1.4,
        }
    ]  # fmt: skip
