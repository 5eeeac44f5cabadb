"""Actions in replies as models write them, and what is a legal value: what was on offer."""

import re
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.prompts import Prompt
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.memwalker import REVERT, ReadLeaf, Triage, parse_action
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint, Labelled
from tests.support.reading import family

FOUR = ("the sexton", "nobody", "a child", "the wind")


def test_a_number_that_may_have_been_cut_is_none() -> None:
    assert parse_action("Action: 1", is_cut=True) is None
    assert parse_action("Action: 1\n", is_cut=True) is None
    assert parse_action("Action: 1\nAnsw", is_cut=True) == 1


def leaf(options: tuple[str, ...] = (), reasoning: bool = True) -> ReadLeaf:
    return ReadLeaf("The bell rings.", "Who rang?", options, reasoning, None)


def form(prompt: Any) -> str:
    found = family().form(type(prompt))
    assert found is not None
    return found


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_legal_action_is_read_as_what_it_means(data: st.DataObject) -> None:
    """Of triage: a child that is left or, where that is legal, -1; after reasons of one line."""
    num = data.draw(st.integers(1, 30))
    rejected = tuple(data.draw(st.sets(st.integers(0, num - 1), max_size=num - 1)))
    prompt = Triage(("a summary",) * num, "Who?", data.draw(st.booleans()), rejected,
                    may_revert=data.draw(st.booleans()))  # fmt: skip
    pattern = prompt.legal(form(prompt)).regex
    for action in (*range(-2, num + 2), 10 * num):
        reason = "Reasoning: because (2) of *them*\n" if prompt.reasoning else ""
        reply = f"{reason}Action: {action}"
        is_legal = action in {*range(num)} - {*rejected} or (action == REVERT and prompt.may_revert)
        assert bool(re.fullmatch(pattern, reply)) == is_legal
        assert prompt.read(reply, False) == action
    assert bool(re.fullmatch(pattern, "Action: 0")) <= (not prompt.reasoning)


@pytest.mark.parametrize("reasoning", [False, True])
def test_every_letter_and_going_back_are_read(reasoning: bool) -> None:
    for num in range(1, 27):
        prompt = leaf(("option",) * num, reasoning)
        pattern = prompt.legal(form(prompt)).regex
        reason = "Reasoning: why\n" if reasoning else ""
        assert re.fullmatch(pattern, f"{reason}Action: -1")
        assert not re.fullmatch(pattern, f"{reason}Action: -2")
        for index, letter in enumerate(ascii_uppercase):
            reply = f"{reason}Action: -2\nAnswer: ({letter})"
            assert bool(re.fullmatch(pattern, reply)) == (index < num)
            assert prompt.read(reply, False) == (-2, index if index < num else "out_of_range")


def test_the_longest_reasons_leave_tokens_for_the_action() -> None:
    """Even at a token a character, as random weights write them."""
    triage = Triage(("a summary",) * 100, "Who?", reasoning=True, rejected=())
    for prompt, action in ((triage, "99"), (leaf(FOUR), "-2\nAnswer: (D)")):
        pattern = prompt.legal(form(prompt)).regex
        around = len(f"Reasoning: \nAction: {action}")
        longer = "@" * (prompt.max_reply_tokens - around)  # and the end is a token, too
        assert not re.fullmatch(pattern, f"Reasoning: {longer}\nAction: {action}")
        assert re.fullmatch(pattern, f"Reasoning: {longer[:400]}\nAction: {action}")


@pytest.mark.vllm
def test_xgrammar_takes_what_is_legal() -> None:
    """After reasons of any length up to their maximum."""
    import xgrammar  # comes with vLLM

    vocabulary = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    tokens = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
    )
    prompt = leaf(FOUR)
    grammar = xgrammar.Grammar.from_regex(prompt.legal(form(prompt)).regex)
    compiled = xgrammar.GrammarCompiler(tokens).compile_grammar(grammar)

    def takes(reply: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token) for token in (*reply.encode(), 256))

    for reason in ("why", "x" * 450):
        assert takes(f"Reasoning: {reason}\nAction: -1")
        assert takes(f"Reasoning: {reason}\nAction: -2\nAnswer: (D)")
    for reply in ("Action: -1", "Reasoning: why\nAction: 0", "Reasoning: why\nAction: -2"):
        assert not takes(reply), reply


PASSAGES = (
    Passage("gist", 3, "Dawn."),
    Passage("page", 4, "Noon."),
    Passage("text", None, "Dusk."),
)
WHO, OPTIONS = "Who rang?", ("the sexton", "nobody")
BREAK = BreakPoint("", (Labelled("Dawn.", None), Labelled("Noon.", 4), Labelled("Dusk.", 5)))
TRIAGE = Triage(("Dawn.", "Noon.", "Dusk."), WHO, reasoning=False, rejected=(1,))
REVERTING = Triage(("Dawn.",), WHO, reasoning=False, rejected=(), may_revert=True)
LEAF = ReadLeaf("Dawn.", WHO, OPTIONS, reasoning=False, answer_words=None)


@pytest.mark.parametrize(
    ("prompt", "reply", "is_legal"),
    [
        (BREAK, "Break point: <5>", True),
        (BREAK, "Break point: <57>", False),
        (AnswerQuestion(PASSAGES, WHO, OPTIONS, None), "Answer: (B)", True),
        (AnswerQuestion(PASSAGES, WHO, OPTIONS, None), "Answer: (C)", False),
        (AnswerQuestion(PASSAGES, WHO, (), None), "out_of_range", True),
        (SequentialLookUp(PASSAGES, WHO, (), (4,), ()), "Page 3", True),
        (SequentialLookUp(PASSAGES, WHO, (), (4,), ()), "Page 4", False),
        (SequentialLookUp(PASSAGES, WHO, (), (4,), ()), "STOP", True),
        (SequentialLookUp(PASSAGES, WHO, (), (4,), ()), "Page 5", False),
        (ParallelLookUp(PASSAGES, WHO, (), 2), "I want to look up Page [4, 3]", True),
        (ParallelLookUp(PASSAGES, WHO, (), 2), "I want to look up Page []", True),
        (ParallelLookUp(PASSAGES, WHO, (), 2), "I want to look up Page [4, 14]", False),
        (TRIAGE, "Action: 2", True),
        (TRIAGE, "Action: 1", False),
        (TRIAGE, "Action: -1", False),
        (REVERTING, "Action: -1", True),
        (LEAF, "Action: -1", True),
        (LEAF, "Action: -2\nAnswer: (B)", True),
        (LEAF, "Action: -2\nAnswer: (C)", False),
        (LEAF, "Action: 3", False),
    ],
)
def test_what_was_not_on_offer_is_not_legal(
    prompt: Prompt[Any], reply: str, is_legal: bool
) -> None:
    value = family("generic").read(prompt, reply, is_cut=False)
    assert value is not None and prompt.is_legal(value) == is_legal
