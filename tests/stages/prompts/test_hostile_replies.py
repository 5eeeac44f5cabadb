"""Replies that no model should give: thousands through every prompt, seeded, and very long ones."""

import time
from typing import Any

import pytest

from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.reply_forms import MOST_CHARS, read_reply, split_reply
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from tests.support.engines.hostile_replies import replies
from tests.support.reading import family

pytestmark = pytest.mark.sampled


def is_storable(value: Any) -> bool:
    """True for what rows take: text, a number of at most nine digits, tuples of these."""
    if isinstance(value, tuple):
        return all(map(is_storable, value))
    return isinstance(value, str) or (type(value) is int and abs(value) < 10**9)


@pytest.mark.parametrize("name", PROMPTS)
def test_a_few_hundred_replies_to_every_prompt(name: str) -> None:
    samples = PROMPTS[name].samples()
    for place, sample in enumerate(samples):
        form = family().form(type(sample))
        for reply in replies(sample, 300 // len(samples) + 1):
            value = read_reply(sample, form, reply, is_cut=place % 2 == 1)
            assert value is None or is_storable(value), (reply[:300], value)


# What took minutes at this length: values that each look back over the whole reply, and runs that
# two parts of a regex can share in as many ways as the run is long.
SLOW = (
    ("look_up_p", "", "Page 1/"), ("look_up_p", "Page", "\n"), ("look_up_s", "", "Page 1/"),
    ("look_up_s", "x\n", "\n"), ("look_up_s", "Page", "\u2028 "), ("triage", "x\n", "\n"),
    ("triage", "Action: ", "\r"), ("triage", "", "Action: 1 "), ("read_leaf", "x\n", "\n \n"),
    ("read_leaf", "Action: ", "\x1f"), ("starts_chapter", "yes", "…"),
    ("starts_chapter", "no", "\r"), ("answer", "", "Answer: (A) "),
    ("break_point", "Break point: <", " "), ("break_point", "", "label "),
    ("extract_facts", "", "["), ("extract_facts", "", '["a",'),
    ("extract_events", "", '[{"event":'), ("time_range", "{", '"start": "2023/05/01", '),
    ("time_range", '{"start": ', "9"),
    ("answer_chats_con", "", "Answer:\n"), ("extract_keyphrases", "", ";"), ("note", "a", " "),
    ("clue_spans", "clue", " "), ("clue_spans", "", "1. "), ("clue_spans", "", "'"),
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


def test_a_reply_that_mentions_too_many_pages_or_a_page_and_stop_asks_for_none() -> None:
    prompt = SequentialLookUp.samples()[0]
    assert [prompt.read("Page 3. " * number, False) for number in (1_000, 1_001)] == [3, None]
    assert prompt.read("I want to look up Page 3.\nSTOP", False) is None
