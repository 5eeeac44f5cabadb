"""LongMemEval's judges: which rubric, what is shown, what is a verdict, what the word rules say."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.rows import Question
from stages.judge.rate import RateByType
from stages.prompts.judging import (
    JudgeAbstention,
    JudgeGeneric,
    JudgeKnowledgeUpdate,
    JudgePreference,
    JudgeTemporal,
)
from stages.tables.answers import Rating
from tests.stages.judge.test_rate import answer, rows
from tests.support.reading import always, deadline, never, question, run, scripted

STAGE = RateByType()


def asked(kind: str | None = None, task: str | None = None, **more: Any) -> Question:
    return question(**{"references": ("at noon",), "question_type": kind, "task": task, **more})


@pytest.mark.parametrize(
    ("kind", "task", "rubric"),
    [  # the six types of the dataset, and abstention in place of any of them
        ("single-session-user", None, "generic"),
        ("single-session-assistant", None, "generic"),
        ("multi-session", None, "generic"),
        ("temporal-reasoning", None, "temporal"),
        ("knowledge-update", None, "knowledge_update"),
        ("single-session-preference", None, "preference"),
        ("single-session-user", "abstention", "abstention"),
        ("temporal-reasoning", "abstention", "abstention"),
        (None, None, "generic"),  # another corpus
        ("why", None, "generic"),
    ],
)
def test_a_questions_type_chooses_the_rubric(
    kind: str | None, task: str | None, rubric: Any
) -> None:
    engine = always("Yes")
    made, calls = run(STAGE, rows([asked(kind, task)], [answer()]), engine, "longmemeval")
    assert made == [
        Rating(
            document_id="d", question_id="q", rater="listener-test", rater_is_model=True,
            rubric=rubric, reference_index=None, label="yes", value=1.0,
        )
    ]  # fmt: skip
    [request] = engine.requests
    assert (request.prompt, request.max_reply_tokens) == (f"judge_{rubric}", 10)
    assert [(call.question_id, call.reference_index) for call in calls] == [("q", None)]


@pytest.mark.parametrize(
    ("rule", "label", "value", "problem"),
    [
        ({"reply": "Yes."}, "yes", 1.0, None),
        ({"reply": "no"}, "no", 0.0, None),
        ({"reply": "Yes, it is", "finish_reason": "length"}, "yes", 1.0, None),
        ({"reply": "Partially"}, None, None, "unparseable"),
        ({"reply": "Hard to say"}, None, None, "unparseable"),
        ({"reply": ""}, None, None, "unparseable"),
        ({"reply": "The user", "finish_reason": "length"}, None, None, "truncated"),
        ({"finish_reason": "abort"}, None, None, "engine_failed"),
        ({"hang": True}, None, None, "timeout"),
    ],
)
def test_what_is_no_verdict_is_unscored(
    tmp_path: Path,
    rule: dict[str, Any],
    label: str | None,
    value: float | None,
    problem: str | None,
) -> None:
    made, _ = run(
        STAGE, rows([asked()], [answer()]), scripted(tmp_path, rule),
        deadline_seconds=deadline(rule),
    )  # fmt: skip
    assert [(r.label, r.value, r.problem) for r in made] == [(label, value, problem)]


def test_a_missing_answer_is_wrong_and_says_why() -> None:
    made, _ = run(STAGE, rows([asked("multi-session")], [answer(problem="timeout")]), never())
    assert [(r.rubric, r.label, r.value, r.problem, r.detail) for r in made] == [
        ("generic", None, 0.0, "upstream", "answer: timeout")
    ]


JUDGES = sorted(name for name in PROMPTS if name.startswith("judge_"))


def published(reply: str) -> str:
    """As the authors' evaluate_qa.py: 'yes' in the lower-cased reply."""
    return "yes" if "yes" in reply.lower() else "no"


@given(
    name=st.sampled_from(JUDGES),
    word=st.sampled_from(["yes", "Yes", "YES", "no", "No", "NO"]),
    before=st.sampled_from(["", " ", "\n", '"', "**", "Answer: "]),
    after=st.sampled_from(["", ".", "!", '"', "**", "\n", ".\n\n"]),
)
def test_plain_replies_are_read_as_published(name: str, word: str, before: str, after: str) -> None:
    reply = f"{before}{word}{after}"
    prompt = PROMPTS[name].samples()[0]
    assert prompt.read(reply, False) == published(reply) == word.lower()


@pytest.mark.parametrize(
    ("reply", "ours", "theirs"),
    [
        ("No, yesterday is not what the key says.", "no", "yes"),
        ("The answer does not contain it.", None, "no"),
        ("Yes and no.", None, "yes"),
        ("", None, "no"),
    ],
)
def test_where_the_published_rule_differs(reply: str, ours: str | None, theirs: str) -> None:
    for name in JUDGES:
        assert PROMPTS[name].samples()[0].read(reply, False) == ours
    assert published(reply) == theirs


KEY = "29 days passed in Miami"
RUBRIC = "The user would prefer hotels in Miami with a view of the ocean"


@pytest.mark.parametrize(
    ("prompt", "verdict"),
    [  # what the extractive engine says, by the words alone
        (JudgeGeneric("?", "It was in Miami that 29 days passed", KEY), "yes"),
        (JudgeGeneric("?", "It was in Miami", KEY), "no"),  # a part of it
        (JudgeGeneric("?", "", KEY), "no"),
        (JudgeTemporal("?", "30 days passed in Miami", KEY), "yes"),
        (JudgeTemporal("?", "27 days passed in Miami", KEY), "no"),
        (JudgeKnowledgeUpdate("?", "First six, now nine months", "nine months"), "yes"),
        (JudgeKnowledgeUpdate("?", "Six months", "nine months"), "no"),
        (JudgePreference("?", "Hotels in Miami have an ocean view", RUBRIC), "yes"),
        (JudgePreference("?", "Try any chain", RUBRIC), "no"),
        (JudgeAbstention("?", "You didn't mention a hamster.", "Only a cat."), "yes"),
        (JudgeAbstention("?", "Your hamster is called Bo.", "Only a cat."), "no"),
    ],
)
def test_the_extractive_judge_goes_by_words(prompt: Prompt[Any], verdict: str) -> None:
    assert prompt.extractive() == verdict
