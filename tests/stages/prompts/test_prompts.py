"""What holds for every prompt module: a new one is tried by being there; and the shipped families,
their templates, examples and settings."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.prompts import PROMPTS, Constraint, Prompt, rendered_values
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
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from tests.support.reading import FAMILIES, NASTY, family

OURS = [PROMPTS[name] for name in sorted(PROMPTS) if PROMPTS[name].__module__.startswith("stages.")]
SAMPLES = [sample for prompt in OURS for sample in prompt.samples()]
each_prompt = pytest.mark.parametrize("prompt", OURS, ids=lambda prompt: prompt.name)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
each_family = pytest.mark.parametrize("name", FAMILIES)


def takes(constraint: Constraint, reply: str) -> bool:
    if constraint.choices:
        return reply in constraint.choices
    return re.fullmatch(constraint.regex, reply) is not None


@each_prompt
def test_the_samples_set_every_field_somewhere(prompt: type[Prompt[Any]]) -> None:
    for field in dataclasses.fields(prompt):
        assert any(getattr(sample, field.name) for sample in prompt.samples()), field.name


@each_family
def test_turns_take_turns_and_nothing_is_none(name: str) -> None:
    for sample in SAMPLES:
        messages = family(name).render(sample)
        roles = [message["role"] for message in messages]
        assert roles == ["user", *["assistant", "user"] * (len(messages) // 2)]
        assert (len(messages) > 1) == bool(sample.follows)
        text = "\n".join(message["content"] for message in messages)
        assert "None" not in text, "no number of a passage without one"


@each_family
def test_what_is_legal_is_read_and_told_apart(name: str) -> None:
    formed = [(sample, family(name).form(type(sample))) for sample in SAMPLES]
    enumerated = [(s, form, family(name).constraint(s)) for s, form in formed if form]
    assert sum(legal is not None for _, _, legal in enumerated) > 20
    for sample, form, legal in enumerated:
        if legal is None:
            continue
        assert bool(legal.choices) != bool(legal.regex)
        values = [family(name).read(sample, choice, False) for choice in legal.choices]
        assert None not in values and "out_of_range" not in values
        assert len(set(values)) == len(legal.choices)
        assert not takes(legal, "") and not takes(legal, f"{form} or so")


@each_sample
def test_what_is_expected_is_read(sample: Prompt[Any]) -> None:
    """As a legal value where there is something to enumerate."""
    for reply in (sample.expected(), sample.extractive()):
        value = sample.read(reply, False)
        assert value is not None and value != "out_of_range", reply
        form = sample.form
        legal = sample.legal(form) if form else None
        if form and legal:
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            named = {meant: said for said, meant in sample.form_values().items()}
            # STOP has no form, and reasons may go before an action.
            replies = {form.replace("{}", named.get(value, text)), text.upper(), reply}
            assert any(takes(legal, said) for said in replies), reply


def test_which_replies_are_a_problem_when_they_are_cut() -> None:
    """Keys, clues and queries are searched with, cut or not."""
    assert {prompt.name for prompt in OURS if prompt.is_whole} == {
        "answer", "answer_chats", "answer_chats_con", "compress", "gist", "gist_chunk",
        "gist_follow_up", "gist_for_task", "note", "read_leaf", "summarize", "update_summary",
    }  # fmt: skip


@each_sample
def test_nothing_is_read_in_nothing(sample: Prompt[Any]) -> None:
    for reply in ("", " ", "\n\n"):
        assert sample.read(reply, is_cut=False) is sample.read(reply, is_cut=True) is None


PROMPTS_FOLDER = CONF / "prompts"
FOLDERS = [PROMPTS_FOLDER / name for name in FAMILIES]
PASSAGES = (
    Passage("gist", 0, "The village wakes up."),
    Passage("page", 1, "The bell rings twelve times."),
    Passage("gist", 2, "Nobody admits it."),
)
QUESTION = "Who rang the bell?"
OPTIONS = ("the sexton", "nobody", "a child", "the wind")
TEXT_FIRST = [folder for folder in FOLDERS if folder.name != "readagent_qmsum"]
each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def text(folder: Path, prompt: Prompt[Any]) -> str:
    (message,) = family(folder.name).render(prompt)
    assert message["role"] == "user"
    return message["content"]


def shared_prefix(*texts: str) -> str:
    ends = (i for i, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1)
    return texts[0][: next(ends)]


@each_folder
def test_family_passes_its_check(folder: Path) -> None:
    assert check_family(folder, [PROMPTS_FOLDER]) == []


def test_published_settings() -> None:
    """ReadAgent table 10; families that are not in it have generic's."""
    published = {"narrativeqa_gutenberg": (500, 3000), "narrativeqa_movie": (600, 1000)}
    published |= {f"readagent_{name}": words for name, words in published.items()}
    for name in FAMILIES:
        settings = family(name).settings
        words = settings["min_words"], settings["max_words"]
        assert words == published.get(name, (280, 600)), name


@pytest.mark.parametrize("folder", TEXT_FIRST, ids=lambda folder: folder.name)
def test_look_up_and_answer_share_memory_and_question(folder: Path) -> None:
    for options in ((), OPTIONS):
        prompts = [
            text(folder, ParallelLookUp(PASSAGES, QUESTION, options, max_pages=3)),
            text(folder, SequentialLookUp(PASSAGES, QUESTION, options, (1,), ())),
            text(folder, AnswerQuestion(PASSAGES, QUESTION, options, answer_words=30)),
        ]
        shared = shared_prefix(*prompts)
        assert shared.index("<Page 0>\nThe village wakes") < shared.index("<Page 2>\nNobody")
        assert shared.rstrip().endswith(options[-1] if options else QUESTION)


@each_folder
def test_an_expanded_page_changes_nothing_before_it(folder: Path) -> None:
    gists = (*PASSAGES[:2], Passage("page", 2, "The sexton shrugs."))
    first = text(folder, SequentialLookUp(PASSAGES, QUESTION, (), (), ()))
    then = text(folder, SequentialLookUp(gists, QUESTION, (), (2,), ()))
    assert shared_prefix(first, then).endswith("<Page 2>\n")


@each_folder
@pytest.mark.parametrize("options", [(), OPTIONS[:2], OPTIONS])
@pytest.mark.parametrize("passages", [(), PASSAGES, (Passage("text", None, "The bell rings."),)])
def test_look_up_prompt_bounds_the_answer_prompt(
    folder: Path, options: tuple[str, ...], passages: tuple[Passage, ...]
) -> None:
    answer = text(folder, AnswerQuestion(passages, QUESTION, options, answer_words=10_000))
    for max_pages in range(1, 7):
        look_up = text(folder, ParallelLookUp(passages, QUESTION, options, max_pages))
        assert len(look_up) >= len(answer)
    one_by_one = text(folder, SequentialLookUp(passages, QUESTION, options, (), ()))
    assert len(one_by_one) >= len(answer) or not passages, "there is always a page to look up"


def rests_on_papers(name: str) -> bool:
    return PROMPTS_FOLDER / "papers" in family_layers(PROMPTS_FOLDER / name, [PROMPTS_FOLDER])


OF_PAPERS = [*filter(rests_on_papers, FAMILIES)]
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


@each_folder
@pytest.mark.parametrize(("prompts", "last"), [(OF_MEMORY, NASTY), (OF_CHAT, CHAT)])
def test_prompts_of_one_memory_or_chat_begin_alike(
    folder: Path, prompts: list[Prompt[Any]], last: str
) -> None:
    """Whatever is asked, so that a prefix cache serves them all."""
    texts = [text(folder, prompt) for prompt in prompts]
    start = texts[0][: texts[0].index(last) + len(last)]
    assert "Who?" not in start and (DATE in start or prompts is OF_MEMORY)
    assert len({*texts}) == len(texts)
    assert all(text.startswith(f"{start}\n\n") for text in texts)
