"""Replies of hundreds of thousands of characters: what is parsed is bounded, and parsing takes time
by the length alone."""

import time
from typing import Any

import pytest

from pipeline.core.errors import Problem
from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.reply_forms import MOST_CHARS, read_reply, split_reply
from pipeline.core.rows import Question, Record
from pipeline.work.stage import Stage
from stages.index.gist_pages import GistPages
from stages.prompts.choose_pages import ParallelLookUp, SequentialLookUp
from stages.retrieve.read_agent import ReadAgentP
from tests.support.reading import always, book, family, question, run

pytestmark = pytest.mark.sampled

# What took minutes at this length: values that each look back over the whole reply, and runs that
# two parts of a regex can share in as many ways as the run is long.
SLOW = (
    ("look_up_p", "", "Page 1/"), ("look_up_p", "Page", "\n"), ("look_up_s", "", "Page 1/"),
    ("look_up_s", "x\n", "\n"), ("look_up_s", "Page", "\u2028 "), ("triage", "x\n", "\n"),
    ("triage", "Action: ", "\r"), ("triage", "", "Action: 1 "), ("read_leaf", "x\n", "\n \n"),
    ("read_leaf", "Action: ", "\x1f"), ("starts_chapter", "yes", "…"),
    ("starts_chapter", "no", "\r"), ("answer", "", "Answer: (A) "),
    ("break_point", "Break point: <", " "), ("break_point", "", "label "),
)  # fmt: skip
MARKS = (
    *("<think>", "</think>", "<reasoning>", "</analysis>", "<answer>", "</answer>", "<|im_end|>"),
    *("```\n", "<|channel|>", "analysisX", "assistantfinal", "[THINK]"),
)
GENEROUS_SECONDS = 60.0  # for what takes under 2 on a quiet machine


def read(prompt: Prompt[Any], reply: str) -> Any:
    return read_reply(prompt, family().form(type(prompt)), reply, is_cut=False)


def test_a_reply_over_the_bound_is_not_parsed() -> None:
    prompt = ParallelLookUp.samples()[0]
    reply = "I want to look up Page [2]"
    assert read(prompt, reply.ljust(MOST_CHARS)) == (2,)
    assert read(prompt, reply.ljust(MOST_CHARS + 1)) is None


@pytest.mark.parametrize(
    ("stage", "asked"),
    [(GistPages(page_breaks=False), ()), (ReadAgentP(max_pages=2, first_page=0), (question(),))],
)
def test_an_endless_reply_is_a_row_with_a_problem(
    stage: Stage, asked: tuple[Question, ...]
) -> None:
    rows = book(["One two. "], ["One."], asked)
    made: list[Record]
    made, calls = run(stage, rows, always("Page [0] " * 40_000))
    problems: list[Problem | None] = ["unparseable"]
    assert [row.problem for row in made] == problems
    assert [len(call.reply) for call in calls] == [360_000]  # kept as it is


@pytest.mark.parametrize(("name", "beginning", "part"), SLOW)
def test_parsing_takes_time_by_the_length(name: str, beginning: str, part: str) -> None:
    started = time.monotonic()
    read(PROMPTS[name].samples()[0], (beginning + part * MOST_CHARS)[: MOST_CHARS - 1] + "x")
    assert time.monotonic() - started < GENEROUS_SECONDS


@pytest.mark.parametrize("mark", MARKS)
def test_taking_thinking_and_marks_off_takes_time_by_the_length(mark: str) -> None:
    """Thinking may be many times as long as what is parsed."""
    started = time.monotonic()
    for beginning in ("", *MARKS):
        split_reply(beginning + mark * (150_000 // len(mark)) + "x")
    assert time.monotonic() - started < GENEROUS_SECONDS


def test_what_a_long_sentence_says_of_a_page_is_read_near_it() -> None:
    far = "and so on " * 100
    prompt = SequentialLookUp.samples()[0]
    assert read(prompt, f"I do not need {far} Page 3") == 3
    assert read(prompt, "I do not need Page 3") is None
