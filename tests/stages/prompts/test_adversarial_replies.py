"""Thousands of replies that no model should give, through every prompt: a value that was legal, or
null. Seeded, so that a failure is found again."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.reply_forms import read_reply
from stages.prompts.answer_question import AnswerQuestion
from tests.support.engines.hostile_replies import replies
from tests.support.reading import family

pytestmark = pytest.mark.sampled


def is_number(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 10**9


def is_day(value: Any) -> bool:
    return value == "" or (isinstance(value, str) and len(value) == 10 and value.count("/") == 2)


def is_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(text, str) and text for text in value)


def is_range(value: Any) -> bool:
    return all(map(is_day, value)) and (not all(value) or value[0] <= value[1])


def is_action(value: Any) -> bool:
    return is_number(value, 1 - 10**9)


def is_leaf(value: Any) -> bool:
    return is_action(value[0]) and (len(value) == 2) == (value[0] == -2)


def are_events(value: Any) -> bool:
    return all(is_day(day) and isinstance(text, str) and text for day, text in value)


# Whether a stage may be given such a value, by the documentation of the prompt.
LEGAL: dict[str, Callable[[Any], bool]] = {
    "break_point": is_number,
    "break_point_follow_up": is_number,
    "look_up_p": lambda value: isinstance(value, tuple) and all(map(is_number, value)),
    "look_up_s": lambda value: value == "stop" or is_number(value),
    "triage": is_action,
    "read_leaf": is_leaf,
    "starts_chapter": lambda value: value in ("yes", "no", "not sure"),
    "rate_permissive": lambda value: value in ("yes", "partially", "no"),
    "rate_strict": lambda value: value in ("yes", "no"),
    "time_range": is_range,
    "extract_events": are_events,
}


def is_legal(prompt: Prompt[Any], value: Any) -> bool:
    name = "rate_strict" if prompt.name.startswith("judge_") else prompt.name
    if isinstance(prompt, AnswerQuestion) and prompt.options:
        return value == "out_of_range" or value in range(len(prompt.options))
    return LEGAL.get(name, lambda found: isinstance(found, str) or is_texts(found))(value)


@pytest.mark.parametrize("name", PROMPTS)
def test_a_few_hundred_replies_to_every_prompt(name: str) -> None:
    samples = PROMPTS[name].samples()
    for place, sample in enumerate(samples):
        form = family().form(type(sample))
        for reply in replies(sample, 300 // len(samples) + 1):
            value = read_reply(sample, form, reply, is_cut=place % 2 == 1)
            assert value is None or is_legal(sample, value), (reply[:300], value)
