"""What is read in a reply (tests/stages/prompts/test_replies_of_models.py has a thousand): thinking
is taken off it in one place and kept apart; what a family's own form says goes before every other
reading; and what a constraint allows is read as what it means, and no other list is legal."""

import asyncio
import re
from dataclasses import replace
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import FinishReason, Reply, without_thinking
from pipeline.core.prompts import PROMPTS, Asked, Constraint, Prompt
from pipeline.core.reply_forms import read_reply
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.judging import PermissiveRating, StrictRating
from stages.prompts.readagent_look_up import (
    ParallelLookUp,
    SequentialLookUp,
    list_of,
    parse_page_list,
)
from stages.prompts.readagent_memory import BreakPoint, Labeled
from tests.support.reading import FAMILIES, Listener, family, reader_of

MOST_PAGES = 6  # that the methods of the papers look up at once
SAMPLES = [sample for prompt in PROMPTS.values() for sample in prompt.samples()]
each_family = pytest.mark.parametrize("name", FAMILIES)


@pytest.mark.parametrize(
    ("reply", "text", "thinking"),
    [
        ("<think>A</think>B", "B", "A"), ("[THINK]A[/THINK]B", "B", "A"),
        ("A</think>B", "B", "A"),  # the chat template opened it
        ("</think>B", "B", None), ("<think>\n\n</think>\n\nB", "B", None),
        ("<think>A", "", "A"), ("B<think>A", "", "B\nA"),
        ("<think>A</think>B<think>C</think>D", "D", "A\nB\nC"),
        ("<think>A<think>B</think>C</think>D", "D", "A\nB\nC"),
        ("<|think|>A<|/think|>B", "B", "A"), ("<reasoning>A</reasoning>B", "B", "A"),
        ("<analysis>A</analysis>\n<answer>B</answer>", "B", "A"),
        ("<|channel|>analysis<|message|>A<|start|>assistant<|channel|>final<|message|>B", "B", "A"),
        ("<|channel|>analysis<|message|>A<|end|><|start|>assistant<|message|>B", "B", "A"),
        ("analysisA.assistantfinalB", "B", "A."),
        (" B \n", " B \n", None), ("a < think > b", "a < think > b", None),
    ],
)  # fmt: skip
def test_what_was_said_and_what_was_thought(reply: str, text: str, thinking: str | None) -> None:
    whole = Reply(text=reply, finish_reason="stop", reply_tokens=7)
    apart = replace(whole, text=text, thinking=thinking)
    assert without_thinking(whole) == without_thinking(apart) == apart
    both = without_thinking(replace(whole, thinking="T"))  # an engine has taken some off itself
    assert (both.text, both.thinking) == (text, f"T\n{thinking}" if thinking else "T")


def asked(
    prompt: Prompt[Any], reply: str, finish_reason: FinishReason = "stop"
) -> tuple[Asked[Any], Call]:
    engine = Listener(lambda _: reply, finish_reason=finish_reason)
    asking = Ask(reader_of(engine), "stage", "d", Replies())
    answer = asyncio.run(asking(prompt, Subject(page_index=0)))
    (call,) = asking.calls()
    return answer, call


@pytest.mark.parametrize("form", ["<think>Hm, {}?</think>\n{}", "Hm, {}?\n</think>\n\n{}\n"])
def test_every_prompt_reads_what_follows_the_thinking(form: str) -> None:
    for sample in SAMPLES:
        reply = sample.expected()
        answer, call = asked(sample, form.replace("{}", reply))
        assert answer == asked(sample, reply)[0]
        assert answer.problem is None and answer.value is not None
        assert call.reply == answer.raw == reply
        assert call.thinking == f"Hm, {reply}?"


@pytest.mark.parametrize(
    ("finish_reason", "problem", "of_call"),
    [("stop", "unparseable", None), ("length", "truncated", "truncated")],
)
def test_thinking_without_an_end_says_nothing(
    finish_reason: FinishReason, problem: Any, of_call: str | None
) -> None:
    reply = "57 Page [3] none STOP Answer: (B) YES"
    for sample in SAMPLES:
        answer, call = asked(sample, f"<think>{reply}", finish_reason)
        assert answer == Asked(None, problem, "")
        assert (call.reply, call.thinking, call.problem) == ("", reply, of_call)


@pytest.mark.parametrize(
    ("prompt", "reply", "value"),
    [
        (BreakPoint, "A break point is <60>, too.\n**Break point:** <57>", 57),
        (BreakPoint, "Break point: <57>\nBreak point: <60>", None),
        (SequentialLookUp, "Page 7\nI want to look up Page 3 no more, it only mentions it.", 7),
        (SequentialLookUp, "Page 3\nSTOP", None),
        (ParallelLookUp, "I want to look up Page [7]. I look up Page [3] for its date.", (7,)),
        (AnswerQuestion, "Answer: (B). The answer is (D), some say.", 1),
        (AnswerQuestion, "Answer: (B)\nAnswer: (D)", None),
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


@each_family
def test_every_form_is_read_in_every_family(name: str) -> None:
    """With a reason after it that names another value."""
    for prompt in PROMPTS.values():
        form, values = family(name).form(prompt), list(prompt.form_values.items())
        if form is None or form == "{}":
            continue
        for (text, value), (other, _) in zip(values, reversed(values), strict=True):
            mentioned = other.partition("\n")[0]  # the second line of a value states another one
            reason = f"\nAlthough one might think of page {mentioned} or label <{mentioned}>."
            reply = form.replace("{}", text) + reason
            assert family(name).read(prompt.samples()[0], reply, is_cut=False) == value, reply


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=40), st.text(max_size=80), st.booleans())
def test_nothing_raises(form: str, reply: str, is_cut: bool) -> None:
    words = form.replace("{}", "")  # families have it once in a form
    for sample in (prompt.samples()[0] for prompt in PROMPTS.values()):
        read_reply(sample, f"{words}{{}}", reply, is_cut)
        read_reply(sample, f"{{}} {words}", reply, is_cut)


# Constraints.


def gists(pages: range) -> tuple[Passage, ...]:
    return tuple(Passage("gist", number, "a gist") for number in pages)


def regex(constraint: Constraint | None) -> str:
    assert constraint is not None and constraint.regex and not constraint.choices
    return constraint.regex


LABELS = [*range(1, 121), 999, 1000, 3000]
CHOICES: list[tuple[Prompt[Any], list[object]]] = [  # and what they are read as
    (BreakPoint("", tuple(Labeled("A paragraph.", label) for label in LABELS)), [*LABELS]),
    *((SequentialLookUp(gists(pages), "Who?", (), (), ()), [*pages, "stop"])
      for pages in (range(12), range(1, 111), range(985, 1015))),
    *((AnswerQuestion((), "Who?", ("option",) * number, 30), [*range(number)])
      for number in (1, 2, 25, 26)),
    (StrictRating("Who?", "a", "b"), ["yes", "no"]),
    (PermissiveRating("Who?", "a", "b"), ["yes", "partially", "no"]),
]  # fmt: skip


@each_family
def test_every_legal_choice_is_read(name: str) -> None:
    for prompt, values in CHOICES:
        legal = family(name).constraint(prompt)
        assert legal is not None and not legal.regex
        assert [family(name).read(prompt, reply, False) for reply in legal.choices] == values


@each_family
@pytest.mark.parametrize("first_page", [0, 1])
def test_every_list_of_pages_is_legal_and_read(name: str, first_page: int) -> None:
    written = family(name).form(ParallelLookUp) or ""
    for num_pages, most in ((1, 2), (3, 4), (12, 2)):
        pages = range(first_page, first_page + num_pages)
        prompt = ParallelLookUp(gists(pages), "Who?", (), most)
        legal = re.compile(regex(prompt.legal(written)))
        for listed in chain.from_iterable(product(pages, repeat=n) for n in range(most + 1)):
            reply = written.replace("{}", ", ".join(map(str, listed)))
            assert legal.fullmatch(reply)
            assert family(name).read(prompt, reply, False) == listed
            assert parse_page_list(reply) == listed, "where it was cut off, too"


@each_family
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_a_list_may_be_is_read_as_legal_pages(name: str, data: st.DataObject) -> None:
    """The other way round: from the regex to replies, of long documents. It has every page, and no
    other list is legal."""
    num_pages = data.draw(st.integers(1, 2000))
    most = data.draw(st.integers(1, MOST_PAGES))
    pages = range(first := data.draw(st.sampled_from([0, 1])), first + num_pages)
    prompt = ParallelLookUp(gists(pages), "Who?", (), most)
    legal = regex(family(name).constraint(prompt))
    read = family(name).read(prompt, data.draw(st.from_regex(legal, fullmatch=True)), False)
    assert read is not None
    assert len(read) <= most
    assert set(read) <= set(pages)
    number = data.draw(st.one_of(st.sampled_from([first - 1, pages[-1], pages[-1] + 1]),
                                st.integers(0, 2100)))  # fmt: skip
    others = (f"0{number}", ", 1", "1, ", "1,1", "1 1", " ", "1 to 1", "1" + ", 1" * most)
    for listed, is_legal in ((f"{number}", number in pages), *((other, False) for other in others)):
        reply = (family(name).form(ParallelLookUp) or "").replace("{}", listed)
        assert bool(re.fullmatch(legal, reply)) == is_legal
        assert not re.fullmatch(legal, f"{reply} to see")


def test_signs_in_a_form_stand_for_themselves() -> None:
    written = "a.b? (c|d) \\ ^e$ f* g+ {h} {} -/#\n"
    legal = regex(list_of(written, range(2), 1))
    assert re.fullmatch(legal, written.replace("{}", "1"))
    assert not re.fullmatch(legal, written.replace("{}", "1").replace("a.b", "acb"))


@each_family
def test_the_longest_replies_fit_their_budgets(name: str) -> None:
    """A token is a byte at least, and the one that ends the reply comes last."""
    longest: tuple[tuple[type[Prompt[Any]], str], ...] = (
        (BreakPoint, "99999"), (ParallelLookUp, ", ".join(["1999"] * MOST_PAGES)),
        (SequentialLookUp, "1999"), (AnswerQuestion, "Z"), (StrictRating, "YES"),
        (PermissiveRating, "Yes, partially"),
    )  # fmt: skip
    for prompt, filling in longest:
        reply = (family(name).form(prompt) or "").replace("{}", filling)
        assert filling in reply
        assert len(reply.encode()) + 1 <= family(name).max_reply_tokens(prompt), prompt
