"""Recurrence: segments in order, a summary carried along, the answer from the last one."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from pipeline.asking.replies import SharedReplies
from pipeline.core.rows import Question, UnitRows
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
STAGE = UpdateRunningSummary(
    segment_tokens=5, summary_tokens=4, asks_question=True, last_segment="summarized"
)
ANSWER = AnswerFromRunningSummary(
    first_page=0, answer_words=30, answer_page_tags=True, last_segment="summarized"
)


READ = {"last_segment": "read"}


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
    unit = adding(rows(text=text), {RunningSummary: summaries})
    (answer,), _ = run(ANSWER.model_copy(update=settings), unit, engine)
    assert isinstance(answer, Answer)
    return answer


def test_each_segment_is_read_with_the_summary_of_those_before() -> None:
    engine = in_turn("bell at noon", " nobody admits \n", "wind")
    assert read(engine) == [
        RunningSummary(document_id="d", question_id="q", segment_index=index, start_char=start,
                       end_char=end, summary=summary, num_words=len(summary.split()))
        for index, (start, end, summary) in enumerate([
            (0, 24, "bell at noon"), (24, 43, "nobody admits"), (43, 64, "wind")])
    ]  # fmt: skip
    assert [request.fields for request in engine.requests] == [
        prompt(ONE.strip(), ""), prompt(TWO.strip(), "bell at noon"),
        prompt(THREE, "nobody admits"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "kept", "problem"),
    [
        ("one two three four", "one two three four", None),
        ("One two. Three four.", "One two. Three four.", None),
        ("one two three four five", "one two three four", "truncated"),
        ("One two. Three four five.", "One two.", "truncated"),
    ],
)
def test_a_summary_has_at_most_so_many_tokens(reply: str, kept: str, problem: str | None) -> None:
    first, second, third = read(in_turn("x", reply, "y"))
    assert (second.summary, second.problem, second.num_words) == (kept, problem, len(kept.split()))
    assert (first.problem, third.problem) == (None, None)


@pytest.mark.parametrize(
    ("rule", "problem", "summary"),
    [
        ({"reply": ""}, "unparseable", "bell"),
        ({"reply": "half", "finish_reason": "abort"}, "engine_failed", "bell"),
        ({"hang": True}, "timeout", "bell"),
        ({"reply": "half", "finish_reason": "length"}, "truncated", "half"),
    ],
)
def test_a_failed_step_carries_the_summary_on_and_says_so(
    tmp_path: Path, rule: dict[str, Any], problem: str, summary: str
) -> None:
    rules = ({"match": "Nobody admits", **rule}, {"match": "wind", "reply": "last"},
             {"reply": "bell"})  # fmt: skip
    engine = scripted(tmp_path, *rules)
    made, calls = run(STAGE, rows(), engine, deadline_seconds=deadline(*rules))
    assert [(row.summary, row.problem) for row in made] == [
        ("bell", None), (summary, problem), ("last", None),
    ]  # fmt: skip
    assert len(calls) == 3
    assert answered(made, in_turn("Noon.")).problem is None


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


@pytest.mark.parametrize(("less", "problem"), [(0, None), (1, "context_overflow")])
def test_a_step_that_does_not_fit_the_context(less: int, problem: str | None) -> None:
    """The second prompt, with notes of four words, is the longest."""
    replies = "one two three four", "x", "y"
    tokens = max(num_tokens(prompt(ONE, "")), num_tokens(prompt(TWO, replies[0])))
    engine = Listener(lambda request: "one two three four", tokens + 50 - less)
    made, _ = run(STAGE, rows(text=ONE + TWO), engine, reply_tokens={"update_summary": 50})
    assert [row.problem for row in made] == [None, problem]
    assert [row.summary for row in made] == ["one two three four"] * 2


def test_the_answer_is_from_the_last_summary_alone() -> None:
    made = read(in_turn("bell at noon", "nobody admits", "wind it was"))
    engine = in_turn("The wind did it.")
    answer = answered(made, engine)
    (text,) = engine.prompts()
    assert re.search("left out\\.\n\nwind it was\n\nQuestion: Who rang the bell", text)
    assert not any(part in text for part in (ONE, TWO, THREE, "nobody", "<Page"))
    assert (answer.answer, answer.num_context_words) == ("The wind did it.", 3)
    assert answer.compression_rate == 100 * (1 - 3 / 13)
    assert (answer.page_indexes, answer.context_spans, answer.num_lookups) == ((), (), 0)


def test_one_reading_serves_all_questions_where_the_prompt_has_none(tmp_path: Path) -> None:
    """Also those of another unit of the document, as it sends the same requests."""
    stage = STAGE.model_copy(update={"asks_question": False})
    shared = SharedReplies(UPath(tmp_path) / "shared")
    asked = (question("b", "Where?"), question("a", "When?"))
    made, calls = run(stage, rows(*asked), always("bell at noon"), shared=shared)
    assert len(calls) == 3
    assert [(row.question_id, row.segment_index, row.summary) for row in made] == [
        (name, n, "bell at noon") for name in "ba" for n in range(3)
    ]
    other, calls = run(stage, rows(question("c", "Why?")), never(), shared=shared)
    assert [row.summary for row in other] == ["bell at noon"] * 3
    assert all(call.is_shared for call in calls)
    engine = always("bell")
    run(stage, rows(*asked), engine)
    assert not any("Where" in prompt or "Question" in prompt for prompt in engine.prompts())


@pytest.mark.parametrize(
    ("text", "replies", "shown", "words"),
    [
        (TEXT, ["bell at noon", "nobody admits"], f"nobody admits\n\n{THREE}", 2 + 5),
        (ONE, [], ONE.strip(), 5),
    ],
)
def test_the_last_segment_may_be_read_with_the_summary_before_it(
    text: str, replies: list[str], shown: str, words: int
) -> None:
    """Xu et al. 2022: of a text of one segment that is all."""
    summarized, engine = in_turn(*replies), always("The wind.")
    answer = answered(read(summarized, text, **READ), engine, text, **READ)
    assert len(summarized.requests) == len(replies)
    assert f"left out.\n\n{shown}\n\nQuestion: Who" in engine.prompts()[0]
    assert (answer.problem, answer.num_context_words) == (None, words)
    (span,) = answer.context_spans
    assert text[span.start_char : span.end_char].strip() == shown.split("\n\n")[-1]
