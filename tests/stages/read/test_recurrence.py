"""Recurrence: segments in order, a summary carried along, the answer from the last one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from pipeline.asking.replies import SharedReplies
from pipeline.core.rows import Question, Span, UnitRows
from stages.prompts.memwalker import UpdateSummary
from stages.read.answer_kinds import AnswerFromRunningSummary, UpdateRunningSummary
from stages.tables.answers import Answer
from stages.tables.pages import RunningSummary
from tests.support.reading import (
    Listener,
    adding,
    always,
    deadline,
    document,
    in_turn,
    never,
    num_tokens,
    question,
    run,
    scripted,
)

ONE, TWO, THREE = "The bell rings at noon. ", "Nobody admits it.\n\n", "It was wind, he says."
TEXT = ONE + TWO + THREE  # segments of at most five words: these three
SUMMARIZED: dict[str, Any] = {"last_segment": "summarized"}
READ = {"last_segment": "read"}
STAGE = UpdateRunningSummary(segment_tokens=5, summary_tokens=4, asks_question=True, **SUMMARIZED)


def rows(*questions: Question, text: str = TEXT) -> UnitRows:
    return UnitRows(document=document(text), questions=questions or (question(),))


def read(engine: Listener, text: str = TEXT, **settings: Any) -> list[RunningSummary]:
    made, _ = run(STAGE.model_copy(update=settings), rows(text=text), engine)
    return made


def prompt(segment: str, summary: str) -> UpdateSummary:
    return UpdateSummary(segment, summary, "Who rang the bell?", (), max_words=3)


def answered(
    summaries: Sequence[RunningSummary], engine: Listener, text: str = TEXT, **settings: Any
) -> Answer:
    values = {"first_page": 0, "answer_words": 30, "answer_page_tags": True, **SUMMARIZED}
    stage = AnswerFromRunningSummary.model_validate({**values, **settings})
    (answer,), _ = run(stage, adding(rows(text=text), {RunningSummary: summaries}), engine)
    assert isinstance(answer, Answer)
    return answer


def test_each_segment_is_read_with_the_summary_of_those_before() -> None:
    engine = in_turn("bell at noon", " nobody admits \n", "wind")
    rows = [(row.start_char, row.end_char, row.summary, row.num_words) for row in read(engine)]
    assert rows == [(0, 24, "bell at noon", 3), (24, 43, "nobody admits", 2), (43, 64, "wind", 1)]
    assert [request.fields for request in engine.requests] == [
        prompt(ONE.strip(), ""), prompt(TWO.strip(), "bell at noon"),
        prompt(THREE, "nobody admits"),
    ]  # fmt: skip


def test_a_summary_has_at_most_so_many_tokens() -> None:
    replies = ("One two. Three four.", "one two three four five", "One two. Three four five.")
    assert [(row.summary, row.problem) for row in read(in_turn(*replies))] == [
        ("One two. Three four.", None), ("one two three four", "truncated"),
        ("One two.", "truncated"),
    ]  # fmt: skip


def test_a_failed_step_carries_the_summary_on_and_says_so(tmp_path: Path) -> None:
    rules = ({"match": "Nobody", "reply": ""}, {"match": "Somebody", "hang": True},
             {"match": "Anybody", "reply": "half", "finish_reason": "length"},
             {"match": "wind", "reply": "last"}, {"reply": "bell"})  # fmt: skip
    text = f"{ONE}Nobody admits it now. Somebody should admit it. Anybody might admit it. {THREE}"
    engine = scripted(tmp_path, *rules)
    made, _ = run(STAGE, rows(text=text), engine, deadline_seconds=deadline(*rules))
    assert [(row.summary, row.problem) for row in made] == [
        ("bell", None), ("bell", "unparseable"), ("bell", "timeout"), ("half", "truncated"),
        ("last", None),
    ]  # fmt: skip
    assert answered(made, in_turn("Noon."), text).problem is None


@pytest.mark.parametrize("settings", [{}, READ])
@pytest.mark.parametrize(
    ("text", "problem", "num"), [(TEXT, "unparseable", 3), (" \n ", "empty_input", 1)]
)
def test_where_no_step_gave_a_summary_the_answer_is_upstream(
    settings: dict[str, str], text: str, problem: str, num: int
) -> None:
    """Also where the last segment is read, which hides no failure."""
    made = read(always(""), text, **settings)
    assert [(row.summary, row.problem) for row in made] == [(None, problem)] * num
    assert made[-1].end_char == len(text)
    for summaries in (made, STAGE.failed(rows(), "unit_failed", "a line of ours")):
        answer = answered(summaries, never(), text, **settings)
        detail = f"running_summaries: {summaries[-1].problem}"
        assert (answer.problem, answer.detail) == ("upstream", detail)


def test_a_step_that_does_not_fit_the_context() -> None:
    """The second prompt, with notes of four words, is the longest."""
    notes = "one two three four"
    tokens = max(num_tokens(prompt(ONE, "")), num_tokens(prompt(TWO, notes))) + 50
    for context_tokens, problem in ((tokens, None), (tokens - 1, "context_overflow")):
        engine = always(notes, context_tokens)
        made, _ = run(STAGE, rows(text=ONE + TWO), engine, reply_tokens={"update_summary": 50})
        assert [(row.summary, row.problem) for row in made] == [(notes, None), (notes, problem)]


def test_one_reading_serves_all_questions_where_the_prompt_has_none(tmp_path: Path) -> None:
    """Also those of another unit of the document, as it sends the same requests."""
    stage = STAGE.model_copy(update={"asks_question": False})
    shared, engine = SharedReplies(UPath(tmp_path) / "shared"), always("bell at noon")
    asked = (question("b", "Where?"), question("a", "When?"))
    made, calls = run(stage, rows(*asked), engine, shared=shared)
    assert len(calls) == 3
    assert [(row.question_id, row.segment_index, row.summary) for row in made] == [
        (name, n, "bell at noon") for name in "ba" for n in range(3)
    ]
    assert not any("Where" in prompt or "Question" in prompt for prompt in engine.prompts())
    other, calls = run(stage, rows(question("c", "Why?")), never(), shared=shared)
    assert [row.summary for row in other] == ["bell at noon"] * 3
    assert all(call.is_shared for call in calls)


@pytest.mark.parametrize(
    ("settings", "text", "replies", "shown", "words", "spans"),
    [
        (SUMMARIZED, TEXT, ["bell at noon", "nobody admits", "wind it was"], "wind it was", 3, ()),
        (READ, TEXT, ["bell at noon", "nobody admits"], f"nobody admits\n\n{THREE}", 2 + 5,
         (Span(43, 64),)),
        (READ, ONE, [], ONE.strip(), 5, (Span(0, 24),)),
    ],
)  # fmt: skip
def test_the_answer_is_from_the_last_summary_or_that_before_it_and_the_last_segment(
    settings: dict[str, str], text: str, replies: list[str], shown: str, words: int, spans: Any
) -> None:
    """Xu et al. 2022: of a text of one segment that is all."""
    summarized, engine = in_turn(*replies), always("The wind.")
    answer = answered(read(summarized, text, **settings), engine, text, **settings)
    assert len(summarized.requests) == len(replies)
    assert f"left out.\n\n{shown}\n\nQuestion: Who" in engine.prompts()[0]
    assert (answer.answer, answer.num_context_words) == ("The wind.", words)
    assert answer.compression_rate == 100 * (1 - words / len(text.split()))
    assert (answer.page_indexes, answer.context_spans) == ((), spans)
