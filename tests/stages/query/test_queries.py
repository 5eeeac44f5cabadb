"""Queries of a question: which of a model's lines are searched for, and why others are not."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.query.make_queries import MakeClues, MakeHypothetical, MakeQueries, MakeSubQuestions
from stages.tables.pages import MemoryPassage
from tests.support.reading import (
    adding,
    always,
    deadline,
    document,
    in_turn,
    question,
    run,
    scripted,
)

TEXT = "The bell rings at noon. Nobody admits it."
ASKED = question().question
QUESTION = ("question", ASKED, None)


def memory(*texts: str) -> UnitRows:
    passages = [
        MemoryPassage(document_id="d", passage_index=part, part_index=part, page_index=part,
                      start_char=None, end_char=None, gist=text, num_words=len(text.split()))
        for part, text in enumerate(texts or [TEXT])
    ]  # fmt: skip
    rows = UnitRows(document=document(TEXT), questions=(question(),))
    return adding(rows, {MemoryPassage: passages})


def clues(**settings: Any) -> MakeClues:
    return MakeClues(**{"task": "answer", "draft": False, "min_query_words": 1, "max_queries": 10,
                        **settings})  # fmt: skip


def by_prompt(folder: Path, **replies: str) -> Any:
    rules = [{"prompt": prompt, "reply": reply} for prompt, reply in replies.items()]
    return scripted(folder, *rules)


def queries(stage: MakeQueries, engine: Any) -> list[Any]:
    made, _ = run(stage, memory(), engine)
    return [(row.kind, row.text, row.dropped or row.problem) for row in made]


def test_clues_follow_the_question_and_repeated_or_superfluous_ones_are_not_searched_for(
    tmp_path: Path,
) -> None:
    engine = by_prompt(
        tmp_path,
        clue_spans="1. bell\n2. The  BELL\n3. Bell\n4. rope\n5. tower\n6. stairs",
        clue_questions="- who RANG the bell?\n- rope\n- Why?",
        draft_answer="The sexton.",
    )
    assert queries(clues(draft=True, max_queries=3), engine) == [
        QUESTION, ("draft", "The sexton.", None),
        ("span", "bell", None), ("span", "The  BELL", None), ("span", "Bell", "duplicate"),
        ("span", "rope", None), ("span", "tower", "over_maximum"),
        ("span", "stairs", "over_maximum"), ("surrogate", "who RANG the bell?", "duplicate"),
        ("surrogate", "rope", "duplicate"), ("surrogate", "Why?", None),
    ]  # fmt: skip


def test_the_authors_filter_is_a_setting_in_any_script(tmp_path: Path) -> None:
    """Lines of at most three words; the second has four, the Chinese ones three and five."""
    spans = "The Weasley Family\nLily Potter's last sacrifice\n韦斯莱\n莉莉的牺牲"
    engine = by_prompt(tmp_path, clue_spans=spans, clue_questions="NONE")
    for least, dropped in ((1, [None] * 4), (4, ["short", None, "short", None])):
        lines = queries(clues(min_query_words=least), engine)[1:]
        assert [reason for _, _, reason in lines] == dropped


@pytest.mark.parametrize(
    ("rule", "problem", "lack"),
    [
        ({"reply": "..."}, "unparseable", None), ({"reply": "NONE"}, None, None),
        ({"hang": True}, "timeout", "queries: timeout"),
    ],
)  # fmt: skip
def test_without_clues_the_question_remains(
    tmp_path: Path, rule: dict[str, Any], problem: str | None, lack: str | None
) -> None:
    rules = {"prompt": "clue_spans", **rule}, {"reply": "Who?"}
    engine = scripted(tmp_path, *rules)
    rows, _ = run(clues(), memory(), engine, deadline_seconds=deadline(*rules))
    spans = [("span", None, problem, lack)] if problem else []
    assert [(row.kind, row.text, row.problem, row.why_unusable()) for row in rows] == [
        (*QUESTION, None), *spans, ("surrogate", "Who?", None, None),
    ]  # fmt: skip


def test_a_memory_that_does_not_fit_is_not_asked() -> None:
    rows, calls = run(clues(), memory("bell " * 500), always("x", context_tokens=400))
    assert [row.problem for row in rows] == [None, "context_overflow", "context_overflow"]
    assert calls == ()
    (failed,) = clues().failed(memory(), "unit_failed", None)
    assert (failed.kind, failed.text) == ("question", None)


def test_each_part_of_the_memory_is_asked_and_searched_for(tmp_path: Path) -> None:
    """Two clues of each; the first of each part comes before the second of any."""
    engine = scripted(tmp_path, {"match": "one", "reply": "first\nboth\nlast"},
                      {"match": "two", "reply": "both\nsecond\nlast"})  # fmt: skip
    rows, calls = run(clues(max_queries=2), memory("one", "two"), engine)
    assert [(row.text, row.part_index, row.dropped) for row in rows if row.kind == "span"] == [
        ("first", 0, None), ("both", 1, None), ("both", 0, "duplicate"), ("second", 1, None),
        ("last", 0, None), ("last", 1, "duplicate"),
    ]  # fmt: skip
    assert [(call.question_id, call.turn, call.prompt) for call in calls] == [
        ("q", turn, prompt) for turn in (0, 1) for prompt in ("clue_questions", "clue_spans")
    ]


def test_key_points_take_the_place_of_an_instruction(tmp_path: Path) -> None:
    for reply, least, rows in (
        ("Tax rise\nBudget cuts", 1, [("point", "Tax rise", None), ("point", "Budget cuts", None)]),
        ("Tax rise", 4, [("point", "Tax rise", "short"), QUESTION]), ("NONE", 1, [QUESTION]),
    ):  # fmt: skip
        stage = clues(task="summary", min_query_words=least)
        assert queries(stage, by_prompt(tmp_path, key_points=reply)) == rows


def test_rewriters(tmp_path: Path) -> None:
    """Of several passages each is drawn with a seed of its own; without sampling they are one
    reply."""
    engine = by_prompt(
        tmp_path, hypothetical=" The sexton rang it.\n", sub_questions="Who?\n2) Which bell?"
    )
    one = MakeHypothetical(num_passages=1, with_question=False)
    assert queries(one, engine) == [("hypothetical", "The sexton rang it.", None)]
    assert queries(MakeSubQuestions(min_query_words=1, max_queries=10), engine) == [
        QUESTION, ("sub_question", "Who?", None), ("sub_question", "Which bell?", None),
    ]  # fmt: skip
    assert queries(one, always("")) == [("hypothetical", None, "unparseable"), QUESTION]
    stage = MakeHypothetical(num_passages=3, with_question=True)
    engine = in_turn("one", "two", "three")
    made, _ = run(stage, memory(), engine, temperature=0.7)
    assert [(row.query_index, row.kind, row.text) for row in made] == [
        (0, "hypothetical", "one"), (1, "hypothetical", "two"), (2, "hypothetical", "three"),
        (3, "question", ASKED),
    ]  # fmt: skip
    assert len({request.seed for request in engine.requests}) == 3
    made, _ = run(stage, memory(), in_turn("one"))
    assert [row.text for row in made] == ["one", "one", "one", ASKED]
