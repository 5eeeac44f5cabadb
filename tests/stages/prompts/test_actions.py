"""Actions in replies as models write them, and what is a legal value: what was on offer."""

import re
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.prompts import Prompt
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.memwalker import REVERT, ReadLeaf, Triage
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint, Labelled
from tests.support.reading import family

FOUR = ("the sexton", "nobody", "a child", "the wind")


def leaf(options: tuple[str, ...] = (), reasoning: bool = True) -> ReadLeaf:
    return ReadLeaf("The bell rings.", "Who rang?", options, reasoning, None)


def legal_regex(prompt: Prompt[Any]) -> str:
    form = family().form(type(prompt))
    legal = prompt.legal(form) if form else None
    assert legal is not None
    return legal.regex


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_legal_action_is_read_as_what_it_means(data: st.DataObject) -> None:
    """Of triage: a child that is left or, where that is legal, -1; after reasons of one line."""
    num = data.draw(st.integers(1, 30))
    rejected = tuple(data.draw(st.sets(st.integers(0, num - 1), max_size=num - 1)))
    prompt = Triage(("a summary",) * num, "Who?", data.draw(st.booleans()), rejected,
                    may_revert=data.draw(st.booleans()))  # fmt: skip
    pattern = legal_regex(prompt)
    for action in (*range(-2, num + 2), 10 * num):
        reason = "Reasoning: because (2) of *them*\n" if prompt.reasoning else ""
        reply = f"{reason}Action: {action}"
        is_legal = action in {*range(num)} - {*rejected} or (action == REVERT and prompt.may_revert)
        assert bool(re.fullmatch(pattern, reply)) == is_legal
        assert prompt.read(reply, False) == action
    assert bool(re.fullmatch(pattern, "Action: 0")) <= (not prompt.reasoning)


@pytest.mark.parametrize("reasoning", [False, True])
def test_every_letter_and_going_back_are_read(reasoning: bool) -> None:
    for num in (1, 2, 25, 26):
        prompt = leaf(("option",) * num, reasoning)
        pattern = legal_regex(prompt)
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
    prompts: tuple[tuple[Prompt[Any], str], ...] = (
        (triage, "99"),
        (leaf(FOUR), "-2\nAnswer: (D)"),
    )
    for prompt, action in prompts:
        pattern = legal_regex(prompt)
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
    grammar = xgrammar.Grammar.from_regex(legal_regex(prompt))
    compiled = xgrammar.GrammarCompiler(tokens).compile_grammar(grammar)

    def takes(reply: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token) for token in (*reply.encode(), 256))

    for reason in ("why", "x" * 450):
        assert takes(f"Reasoning: {reason}\nAction: -1")
        assert takes(f"Reasoning: {reason}\nAction: -2\nAnswer: (D)")
    for reply in ("Action: -1", "Reasoning: why\nAction: 0", "Reasoning: why\nAction: -2"):
        assert not takes(reply), reply


PASSAGES = Passage("gist", 3, "Dawn."), Passage("page", 4, "Noon."), Passage("text", None, "Dusk.")
WHO, OPTIONS = "Who rang?", ("the sexton", "nobody")
BREAK = BreakPoint("", (Labelled("Dawn.", None), Labelled("Noon.", 4), Labelled("Dusk.", 5)))
TRIAGE = Triage(("Dawn.", "Noon.", "Dusk."), WHO, reasoning=False, rejected=(1,))
REVERTING = Triage(("Dawn.",), WHO, reasoning=False, rejected=(), may_revert=True)
LEAF = ReadLeaf("Dawn.", WHO, OPTIONS, reasoning=False, answer_words=None)


@pytest.mark.parametrize(
    ("prompt", "legal", "others"),
    [
        (BREAK, ["Break point: <5>"], ["Break point: <57>"]),
        (AnswerQuestion(PASSAGES, WHO, OPTIONS, None), ["Answer: (B)"], ["Answer: (C)"]),
        (AnswerQuestion(PASSAGES, WHO, (), None), ["out_of_range"], []),
        (SequentialLookUp(PASSAGES, WHO, (), (4,), ()), ["Page 3", "STOP"], ["Page 4", "Page 5"]),
        (ParallelLookUp(PASSAGES, WHO, (), 2), ["I want to look up Page [4, 3]", "Pages: []"],
         ["I want to look up Page [4, 14]"]),
        (TRIAGE, ["Action: 2"], ["Action: 1", "Action: -1"]),
        (REVERTING, ["Action: -1"], []),
        (LEAF, ["Action: -1", "Action: -2\nAnswer: (B)"],
         ["Action: -2\nAnswer: (C)", "Action: 3"]),
    ],
)  # fmt: skip
def test_what_was_not_on_offer_is_not_legal(
    prompt: Prompt[Any], legal: list[str], others: list[str]
) -> None:
    values = [family("generic").read(prompt, reply, is_cut=False) for reply in (*legal, *others)]
    assert None not in values
    assert [*map(prompt.is_legal, values)] == [True] * len(legal) + [False] * len(others)
