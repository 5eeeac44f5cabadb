"""docs/examples/react: a walk of search, read and answer, its limit, and replies without a step."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.runs.example_run import Rows, example_rows, sent_texts

SEARCH = {"prompt": "react", "reply": "I do not know yet.\nSearch: the ditch\nPage 0: I guess"}
WHO = [{"question_id": "who", "question": "Who dug the ditch?", "references": ["Tom"]}]


def react(folder: Path, *replies: dict[str, Any], steps: int = 6, questions: Any = WHO) -> Rows:
    """A run on the document of gistmill.testing, each of whose four pages has 12 words."""
    return example_rows(folder, f"react(max_steps={steps},top_k=1)", replies, questions=questions)


@pytest.mark.slow
def test_it_searches_reads_and_answers(tmp_path: Path) -> None:
    replies = [
        {"prompt": "react", "match": r"Read: 2\*\*\n", "reply": "Her brother.\nAnswer: Tom"},
        {"prompt": "react", "match": "Search: the ditch\n", "reply": "There it is.\n**Read: 2**"},
        SEARCH,
    ]
    rows = react(tmp_path, *replies)
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"]) == ("Tom", None)
    assert (answer["page_indexes"], answer["num_context_words"]) == ([2], 12)
    first, second, third = sent_texts(rows, "react", "who")
    assert "Page 2:" not in first and "steps left: 6" in first
    # Of the reply only what stands before its first action is shown, with what was found.
    found = "Page 2: Her brother Tom dug a ditch from the lake to the wheel."
    assert f"I do not know yet.\nSearch: the ditch\n{found}" in second and "I guess" not in second
    assert third.count("Her brother Tom dug a ditch") == 2 and "steps left: 4" in third
    assert react(tmp_path, *replies) == rows, "resumed without a call"


def test_it_stops_at_the_limit(tmp_path: Path) -> None:
    rows = react(tmp_path, SEARCH, steps=2)
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"]) == (None, "no_answer")
    assert [call["turn"] for call in rows["calls"]] == [0, 1]
    assert "steps left: 1" in sent_texts(rows, "react", "who")[1]


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["I wonder.", "Read: 9", "Read: the river"])
def test_what_is_no_step_is_said(tmp_path: Path, lost: str) -> None:
    said = {"prompt": "react", "match": "no step. There are pages 0 to 3", "reply": "Answer: Tom"}
    rows = react(tmp_path, said, {"prompt": "react", "reply": lost})
    (answer,) = rows["answers"]
    assert (answer["answer"], answer["problem"], answer["page_indexes"]) == ("Tom", None, [])
    assert len(rows["calls"]) == 2
