"""Ratings: two prompts to every reference, or LongMemEval's rubric of the question's type; what is
no verdict, and what the word rules say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.prompts import Prompt
from pipeline.core.rows import Question, UnitRows
from stages.corpora.audits.known_answers import ANOTHER_REFERENCE
from stages.judge.rate import RateAnswers, RateByType
from stages.prompts.judging import (
    JudgeAbstention,
    JudgeGeneric,
    JudgeKnowledgeUpdate,
    JudgePreference,
    JudgeTemporal,
)
from stages.tables.answers import Answer, Rating
from tests.support.reading import adding, always, book, deadline, never, question, run, scripted

STAGE = RateAnswers()
CUT = {"finish_reason": "length"}


def answer(text: str | None = "The wind.", **more: Any) -> Answer:
    given = {"question_id": "q", "reader": "r", "num_context_words": 5, **more}
    return Answer(document_id="d", answer=text, **given)


def rows(questions: Sequence[Question], answers: Sequence[Answer]) -> UnitRows:
    return adding(book(["The bell rings."], questions=questions), {Answer: answers})


def rating(rater: str = "listener-test", **more: Any) -> Rating:
    return Rating(document_id="d", question_id="q", rater=rater, rater_is_model=True, **more)


ASKED = question(references=("the wind", "a gust"))


def test_both_prompts_are_put_to_every_reference(tmp_path: Path) -> None:
    replies = {("strict", "a gust"): "NO", ("permissive", "a gust"): "Yes, partially",
               ("strict", "the wind"): "YES", ("permissive", "the wind"): "Yes"}  # fmt: skip
    rules = ({"prompt": f"rate_{rubric}", "match": reference, "reply": reply}
             for (rubric, reference), reply in replies.items())  # fmt: skip
    made, calls = run(STAGE, rows([ASKED], [answer()]), scripted(tmp_path, *rules))
    rater = "scripted:script-test"
    assert made == [
        rating(rater, reference_index=0, rubric="strict", label="yes", value=1.0),
        rating(rater, reference_index=0, rubric="permissive", label="yes", value=1.0),
        rating(rater, reference_index=1, rubric="strict", label="no", value=0.0),
        rating(rater, reference_index=1, rubric="permissive", label="partially", value=0.5),
    ]
    assert [(call.question_id, call.reference_index, call.prompt) for call in calls] == [
        ("q", index, f"rate_{rubric}") for index in (0, 1) for rubric in ("permissive", "strict")
    ]


@pytest.mark.parametrize(
    ("strict", "permissive", "verdicts"),
    [  # label, value and problem by either prompt
        ({"reply": "Hard"}, {"reply": "Yes"}, ((None, None, "unparseable"), ("yes", 1, None))),
        ({"reply": "YES"}, {"reply": ""}, (("yes", 1, None), (None, None, "unparseable"))),
        ({"reply": "Partially"}, {"reply": "Partially"},
         ((None, None, "unparseable"), ("partially", 0.5, None))),
        ({"finish_reason": "abort"}, {"reply": "No"},
         ((None, None, "engine_failed"), ("no", 0, None))),
        ({"reply": "NO"}, {"hang": True}, (("no", 0, None), (None, None, "timeout"))),
        ({"reply": "Let me", **CUT}, {"reply": "No, the", **CUT},
         ((None, None, "truncated"), ("no", 0, None))),
    ],
)  # fmt: skip
def test_an_unreadable_verdict_is_null_and_never_no(
    tmp_path: Path, strict: dict[str, Any], permissive: dict[str, Any], verdicts: tuple[Any, Any]
) -> None:
    engine = scripted(tmp_path, {"prompt": "rate_strict", **strict}, permissive)
    given = rows([question(references=("the wind",))], [answer()])
    made, _ = run(STAGE, given, engine, deadline_seconds=deadline(strict, permissive))
    assert [(row.rubric, row.label, row.value, row.problem) for row in made] == [
        ("strict", *verdicts[0]), ("permissive", *verdicts[1]),
    ]  # fmt: skip


def test_a_rater_without_room_is_not_asked_and_one_that_is_no_model_says_so() -> None:
    made, calls = run(STAGE, rows([ASKED], [answer()]), always("Yes", context_tokens=40))
    assert [(row.label, row.problem) for row in made] == [(None, "context_overflow")] * 4
    assert calls == ()
    made, _ = run(STAGE, rows([ASKED], [answer()]), always("Yes"), is_model=False)
    assert [(r.rater, r.rater_is_model) for r in made] == [("listener-test", False)] * 4


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (question(options=("a", "b"), references=("a",), answer_index=0), answer()),
        (question(), answer()),
        (ASKED, answer(text=None, skipped=True)),
        (question(), answer(text=None, problem="timeout")),
    ],
)
def test_nothing_to_rate_is_one_skipped_row(asked: Question, given: Answer) -> None:
    made, _ = run(STAGE, rows([asked], [given]), never())
    assert made == [rating(skipped=True)]


@pytest.mark.parametrize("problem", ["truncated", "context_overflow", "upstream"])
def test_an_answer_with_a_problem_is_upstream(problem: Any) -> None:
    made, _ = run(STAGE, rows([ASKED], [answer(problem=problem)]), never())
    assert made == [
        rating(reference_index=index, rubric=rubric, value=0.0, problem="upstream",
               detail=f"answer: {problem}")
        for index in (0, 1) for rubric in ("strict", "permissive")
    ]  # fmt: skip


def test_a_failed_unit_has_the_ratings_of_every_question() -> None:
    questions = [question("a", references=("x",)), question("b")]
    given = rows(questions, [answer(question_id="a"), answer(question_id="b")])
    made = STAGE.failed(given, "unit_failed", "a line of ours")
    STAGE.check(given, made)
    assert [(r.question_id, r.rubric, r.label, r.value, r.skipped) for r in made] == [
        ("a", "strict", None, None, False), ("a", "permissive", None, None, False),
        ("b", None, None, None, True),
    ]  # fmt: skip
    assert {r.problem for r in made} == {"unit_failed"}


def test_a_reference_is_not_compared_with_itself(tmp_path: Path) -> None:
    """In an audit: the row stays, without a call. A rubric that shows all references at once asks
    nothing of it; a method's answer that happens to be a reference is judged as any other."""
    engine = scripted(tmp_path, {"reply": "yes"})
    audited = answer(text="a gust", detail=ANOTHER_REFERENCE)
    made, calls = run(STAGE, rows([ASKED], [audited]), engine)
    assert [(row.reference_index, row.label, row.skipped) for row in made] == [
        (0, "yes", False), (0, "yes", False), (1, None, True), (1, None, True)
    ]  # fmt: skip
    assert len(calls) == 2
    made, calls = run(RateByType(), rows([ASKED], [audited]), engine)
    assert [row.skipped for row in made] == [True] and not calls
    made, calls = run(STAGE, rows([ASKED], [answer(text="a gust")]), engine)
    assert len(calls) == 4 and not any(row.skipped for row in made)


@pytest.mark.parametrize(
    ("kind", "task", "rubric"),
    [  # types of the dataset, and abstention in place of any of them
        ("multi-session", None, "generic"), ("temporal-reasoning", None, "temporal"),
        ("knowledge-update", None, "knowledge_update"),
        ("single-session-preference", None, "preference"),
        ("temporal-reasoning", "abstention", "abstention"),
        (None, None, "generic"),  # another corpus
    ],
)  # fmt: skip
def test_a_questions_type_chooses_the_rubric(
    kind: str | None, task: str | None, rubric: Any
) -> None:
    engine = always("Yes")
    asked = question(references=("at noon",), question_type=kind, task=task)
    made, calls = run(RateByType(), rows([asked], [answer()]), engine, "longmemeval")
    assert made == [rating(rubric=rubric, label="yes", value=1.0)]
    [request] = engine.requests
    assert (request.prompt, request.max_reply_tokens) == (f"judge_{rubric}", 10)
    assert [(call.question_id, call.reference_index) for call in calls] == [("q", None)]


def test_the_extractive_judge_goes_by_words() -> None:
    key = "29 days passed in Miami"
    rubric = "The user would prefer hotels in Miami with a view of the ocean"
    verdicts: dict[Prompt[Any], str] = {
        JudgeGeneric("?", "It was in Miami that 29 days passed", key): "yes",
        JudgeGeneric("?", "It was in Miami", key): "no",  # a part of it
        JudgeTemporal("?", "30 days passed in Miami", key): "yes",
        JudgeTemporal("?", "27 days passed in Miami", key): "no",
        JudgeKnowledgeUpdate("?", "First six, now nine months", "nine months"): "yes",
        JudgeKnowledgeUpdate("?", "Six months", "nine months"): "no",
        JudgePreference("?", "Hotels in Miami have an ocean view", rubric): "yes",
        JudgePreference("?", "Try any chain", rubric): "no",
        JudgeAbstention("?", "You didn't mention a hamster.", "Only a cat."): "yes",
        JudgeAbstention("?", "Your hamster is called Bo.", "Only a cat."): "no",
    }
    assert {prompt: prompt.extractive() for prompt in verdicts} == verdicts
