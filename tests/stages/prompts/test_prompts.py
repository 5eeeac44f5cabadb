"""What holds for every prompt module: a new one is tried by being there; the shipped families, with
templates, examples and settings; and actions as models write them, and what is a legal value."""

import dataclasses
import re
from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.prompts import PROMPTS, Prompt, rendered_values
from pipeline.core.settings import CONF
from pipeline.families.family import family_layers
from pipeline.work.check_family import check_family
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.longmemeval import (
    ExtractEvents,
    ExtractFacts,
    ExtractKeyphrases,
    ExtractSummary,
    NoteOnChat,
)
from stages.prompts.memorag import ClueQuestions, ClueSpans, DraftAnswer, KeyPoints
from stages.prompts.memwalker import REVERT, ReadLeaf, Triage
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint, Labeled
from tests.support.reading import FAMILIES, NASTY, family

ROOT = CONF / "prompts"
OURS = [PROMPTS[name] for name in sorted(PROMPTS) if PROMPTS[name].__module__.startswith("stages.")]
SAMPLES = [sample for prompt in OURS for sample in prompt.samples()]

each_family = pytest.mark.parametrize("name", FAMILIES)


def test_the_samples_set_every_field_somewhere() -> None:
    for prompt in OURS:
        for field in dataclasses.fields(prompt):
            assert any(getattr(sample, field.name) for sample in prompt.samples()), field.name


@each_family
def test_a_family_passes_its_check_turns_take_turns_and_nothing_is_none(name: str) -> None:
    assert check_family(ROOT / name, [ROOT]) == []
    for sample in SAMPLES:
        messages = family(name).render(sample)
        roles = [message["role"] for message in messages]
        assert roles == ["user", *["assistant", "user"] * (len(messages) // 2)]
        assert (len(messages) > 1) == bool(sample.follows)
        text = "\n".join(message["content"] for message in messages)
        assert "None" not in text, "no number of a passage without one"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_what_is_expected_is_read(sample: Prompt[Any]) -> None:
    """As a legal value where there is something to enumerate; in nothing is nothing read."""
    for reply in ("", " ", "\n\n"):
        assert sample.read(reply, is_cut=False) is sample.read(reply, is_cut=True) is None
    for reply in (sample.expected(), sample.extractive()):
        value = sample.read(reply, False)
        assert value is not None and value != "out_of_range", reply
        form = sample.form
        legal = sample.legal(form) if form else None
        if form and legal:
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            named = {meant: said for said, meant in sample.form_values.items()}
            # STOP has no form, and reasons may go before an action.
            replies = {form.replace("{}", named.get(value, text)), text.upper(), reply}
            pattern = legal.regex or "|".join(map(re.escape, legal.choices))
            assert any(re.fullmatch(pattern, said) for said in replies), reply


PASSAGES = (
    Passage("gist", 0, "The village wakes up."), Passage("page", 1, "The bell rings."),
    Passage("gist", 2, "Nobody admits it."),
)  # fmt: skip
OFFERED = Passage("gist", 3, "Dawn."), Passage("page", 4, "Noon."), Passage("text", None, "Dusk.")
BREAK = BreakPoint("", (Labeled("Dawn.", None), Labeled("Noon.", 4), Labeled("Dusk.", 5)))
WHO = "Who rang the bell?"
OPTIONS = ("the sexton", "nobody", "a child", "the wind")


def text(name: str, prompt: Prompt[Any]) -> str:
    (message,) = family(name).render(prompt)
    return message["content"]


def shared_prefix(*texts: str) -> str:
    ends = (i for i, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1)
    return texts[0][: next(ends)]


@each_family
def test_prompts_share_what_they_show_and_an_expanded_page_changes_nothing_before_it(
    name: str,
) -> None:
    for options in ((), OPTIONS) if name != "readagent_qmsum" else ():
        shared = shared_prefix(
            text(name, ParallelLookUp(PASSAGES, WHO, options, max_pages=3)),
            text(name, SequentialLookUp(PASSAGES, WHO, options, (1,), ())),
            text(name, AnswerQuestion(PASSAGES, WHO, options, answer_words=30)),
        )
        assert shared.index("<Page 0>\nThe village wakes") < shared.index("<Page 2>\nNobody")
        assert shared.rstrip().endswith(options[-1] if options else WHO)
    expanded = (*PASSAGES[:2], Passage("page", 2, "The sexton shrugs."))
    first = text(name, SequentialLookUp(PASSAGES, WHO, (), (), ()))
    then = text(name, SequentialLookUp(expanded, WHO, (), (2,), ()))
    assert shared_prefix(first, then).endswith("<Page 2>\n")


@each_family
@pytest.mark.parametrize("options", [(), OPTIONS[:2], OPTIONS])
@pytest.mark.parametrize("passages", [(), PASSAGES, (Passage("text", None, "The bell rings."),)])
def test_look_up_prompt_bounds_the_answer_prompt(
    name: str, options: tuple[str, ...], passages: tuple[Passage, ...]
) -> None:
    """There is always a page to look up one by one."""
    answer = text(name, AnswerQuestion(passages, WHO, options, answer_words=10_000))
    look_ups: list[Prompt[Any]] = [
        ParallelLookUp(passages, WHO, options, max_pages) for max_pages in range(1, 7)
    ]
    if passages:
        look_ups.append(SequentialLookUp(passages, WHO, options, (), ()))
    assert all(len(text(name, look_up)) >= len(answer) for look_up in look_ups)


OF_PAPERS = [name for name in FAMILIES if ROOT / "papers" in family_layers(ROOT / name, [ROOT])]
SENTENCE = "Nothing of the kind is to be found here."


def replies_in(name: str) -> Iterator[tuple[str, str, Any]]:
    """The prompts of a family, each with a line of its rendered samples that the parser reads as a
    value. Lines with a value of the sample are no part of the template; of prompts that take any
    text every line would do, and LongMemEval's have ten examples on purpose."""
    read = family(name).read
    for sample in (sample for prompt in PROMPTS.values() for sample in prompt.samples()):
        if read(sample, SENTENCE, False) is None and not getattr(sample, "with_examples", False):
            values = [value for value in rendered_values(sample) if value]
            for line in filter(str.strip, family(name).render(sample)[-1]["content"].splitlines()):
                is_of_sample = any(value in line or line in value for value in values)
                value = None if is_of_sample else read(sample, line, False)
                if value is not None:
                    yield sample.name, line, value


@pytest.mark.parametrize("name", sorted({*FAMILIES} - {*OF_PAPERS}))
def test_no_line_of_our_prompts_is_a_reply(name: str) -> None:
    """Models repeat examples that they are shown; the papers' families show theirs."""
    assert [*replies_in(name)] == []


@pytest.mark.parametrize("name", OF_PAPERS)
def test_the_families_of_papers_know_the_examples_that_they_show(name: str) -> None:
    shown = {prompt for prompt, line, _ in replies_in(name)
             if line in family(name).examples(PROMPTS[prompt])}  # fmt: skip
    assert {"answer", "break_point", "look_up_p", "look_up_s", "time_range"} <= shown


NASTY_MEMORY = (Passage("gist", 0, "The bell rings."), Passage("gist", 1, NASTY))
CHAT, DATE = "user: I moved to Bern.\n\nassistant: Welcome!", "2023/05/01 (Mon) 21:48"
OF_MEMORY: list[Prompt[Any]] = [
    *(prompt(NASTY_MEMORY, asked, options)
      for prompt in (ClueSpans, ClueQuestions, KeyPoints, DraftAnswer)
      for asked, options in (("Who?", ()), ("Where?", ("here", "there")))),
    KeyPoints(NASTY_MEMORY, "", ()),
]  # fmt: skip
OF_CHAT: list[Prompt[Any]] = [
    *(prompt(CHAT, DATE)
      for prompt in (ExtractSummary, ExtractKeyphrases, ExtractFacts, ExtractEvents)),
    NoteOnChat(CHAT, DATE, "Who?"), NoteOnChat(CHAT, DATE, "When?", DATE),
]  # fmt: skip


@each_family
@pytest.mark.parametrize(("prompts", "last"), [(OF_MEMORY, NASTY), (OF_CHAT, CHAT)])
def test_prompts_of_one_memory_or_chat_begin_alike(
    name: str, prompts: list[Prompt[Any]], last: str
) -> None:
    """Whatever is asked, so that a prefix cache serves them all."""
    texts = [text(name, prompt) for prompt in prompts]
    start = texts[0][: texts[0].index(last) + len(last)]
    assert "Who?" not in start and (DATE in start or prompts is OF_MEMORY)
    assert len({*texts}) == len(texts)
    assert all(text.startswith(f"{start}\n\n") for text in texts)


def leaf(options: tuple[str, ...], reasoning: bool = True) -> ReadLeaf:
    return ReadLeaf("The bell rings.", WHO, options, reasoning, None)


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
    triage: Prompt[Any] = Triage(("a summary",) * 100, WHO, reasoning=True, rejected=())
    for prompt, action in ((triage, "99"), (leaf(OPTIONS), "-2\nAnswer: (D)")):
        pattern = legal_regex(prompt)
        around = len(f"Reasoning: \nAction: {action}")
        longer = "@" * (prompt.max_reply_tokens - around)  # and the end is a token, too
        assert not re.fullmatch(pattern, f"Reasoning: {longer}\nAction: {action}")
        assert re.fullmatch(pattern, f"Reasoning: {longer[:400]}\nAction: {action}")


@pytest.mark.vllm
def test_xgrammar_takes_what_is_legal() -> None:
    import xgrammar  # comes with vLLM

    vocabulary = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    tokens = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
    )
    grammar = xgrammar.Grammar.from_regex(legal_regex(leaf(OPTIONS)))
    compiled = xgrammar.GrammarCompiler(tokens).compile_grammar(grammar)

    def takes(reply: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token) for token in (*reply.encode(), 256))

    for reason in ("why", "x" * 450):
        assert takes(f"Reasoning: {reason}\nAction: -1")
        assert takes(f"Reasoning: {reason}\nAction: -2\nAnswer: (D)")
    for reply in ("Action: -1", "Reasoning: why\nAction: 0", "Reasoning: why\nAction: -2"):
        assert not takes(reply), reply


@pytest.mark.parametrize(
    ("prompt", "legal", "others"),
    [
        (BREAK, ["Break point: <5>"], ["Break point: <57>"]),
        (AnswerQuestion(OFFERED, WHO, OPTIONS, None), ["Answer: (D)"], ["Answer: (E)"]),
        (AnswerQuestion(OFFERED, WHO, (), None), ["out_of_range"], []),
        (SequentialLookUp(OFFERED, WHO, (), (4,), ()), ["Page 3", "STOP"], ["Page 4", "Page 5"]),
        (ParallelLookUp(OFFERED, WHO, (), 2), ["I want to look up Page [4, 3]", "Pages: []"],
         ["I want to look up Page [4, 14]"]),
        (Triage(("Dawn.",) * 3, WHO, False, rejected=(1,)), ["Action: 2"],
         ["Action: 1", "Action: -1"]),
        (Triage(("Dawn.",), WHO, False, (), may_revert=True), ["Action: -1"], []),
        (leaf(OPTIONS, False), ["Action: -1", "Action: -2\nAnswer: (D)"],
         ["Action: -2\nAnswer: (E)", "Action: 3"]),
    ],
)  # fmt: skip
def test_what_was_not_on_offer_is_not_legal(
    prompt: Prompt[Any], legal: list[str], others: list[str]
) -> None:
    values = [family("generic").read(prompt, reply, is_cut=False) for reply in (*legal, *others)]
    assert None not in values
    assert [*map(prompt.is_legal, values)] == [True] * len(legal) + [False] * len(others)
