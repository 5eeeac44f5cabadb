"""What a family's own form says goes before every other reading of a reply."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.reply_forms import read_reply
from stages.prompts.answer import AnswerQuestion
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint
from tests.support.reading import FAMILIES, family


@pytest.mark.parametrize(
    ("prompt", "reply", "value"),
    [
        (BreakPoint, "Break point: <57>. A break point is <60>.", 57),
        (BreakPoint, "A break point is <60>, too.\n**Break point:** <57>", 57),
        (BreakPoint, "Break point: <57>\nBreak point: <60>", None),
        (BreakPoint, "So: Break point: < 57 >", 57),
        (SequentialLookUp, "Page 7\nI want to look up Page 3 no more, it only mentions it.", 7),
        (SequentialLookUp, "Page 3 mentions it, so I want to look up Page 7", 7),
        (SequentialLookUp, "Page 3 was the one.\n\n**STOP**", "stop"),
        (SequentialLookUp, "Page 3\nPage 7", None),
        (SequentialLookUp, "Page 3\nSTOP", None),
        (ParallelLookUp, "I want to look up Page [7]. I look up Page [3] for its date.", (7,)),
        (ParallelLookUp, "I want to look up Page [3]\nI want to look up Page [7]", (3, 7)),
        (ParallelLookUp, "I want to look up Page [1, two, 3]", (1, 3)),
        (ParallelLookUp, "I want to look up Page [7 to 12], that is Page 7", None),
        (AnswerQuestion, "Answer: (B). The answer is (D), some say.", 1),
        (AnswerQuestion, "Answer: (B)\nAnswer: (D)", None),
        (AnswerQuestion, "Answer: (B)\nOnce more, then:\nAnswer: (B)", 1),
        (AnswerQuestion, "Answer: (A) and (B)", None),
    ],
)
def test_a_statement_goes_first(prompt: type[Prompt[Any]], reply: str, value: object) -> None:
    assert read_reply(prompt.samples()[0], prompt.form, reply, is_cut=False) == value


def test_the_form_is_the_familys_and_free_text_has_none() -> None:
    reply = "Ich wähle die Marke <57>. Break point: <60> wäre der nächste."
    for form, value in (("Break point: <{}>", 60), ("Ich wähle die Marke <{}>", 57)):
        assert read_reply(BreakPoint.samples()[0], form, reply, is_cut=False) == value
    without_options, reply = AnswerQuestion.samples()[1], "The sexton. Answer: (B) stood there."
    assert read_reply(without_options, "Answer: ({})", reply, is_cut=False) == reply


@pytest.mark.parametrize("name", FAMILIES)
def test_every_form_is_read_in_every_family(name: str) -> None:
    """With a reason after it that names another value."""
    for prompt in PROMPTS.values():
        form, values = family(name).form(prompt), list(prompt.form_values().items())
        if form is None or form == "{}":
            continue
        for (text, value), (other, _) in zip(values, reversed(values), strict=True):
            mentioned = other.partition("\n")[0]  # the second line of a value states another one
            reason = f"\nAlthough one might think of page {mentioned} or label <{mentioned}>."
            reply = form.replace("{}", text) + reason
            assert family(name).read(prompt.samples()[0], reply, is_cut=False) == value, reply


@settings(deadline=None)  # of seconds a busy machine decides
@given(st.text(max_size=40), st.text(max_size=80), st.booleans())
def test_nothing_raises(form: str, reply: str, is_cut: bool) -> None:
    words = form.replace("{}", "")  # families have it once in a form
    for prompt in PROMPTS.values():
        read_reply(prompt.samples()[0], f"{words}{{}}", reply, is_cut)
        read_reply(prompt.samples()[0], f"{{}} {words}", reply, is_cut)
