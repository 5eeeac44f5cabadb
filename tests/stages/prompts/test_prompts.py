"""The shipped prompt families: their templates, examples and settings."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.settings import CONF
from pipeline.families.family import family_layers, read_family_file
from pipeline.work.check_family import check_family
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.choose_pages import ParallelLookUp, SequentialLookUp
from stages.prompts.passages import Passage
from tests.support.reading import FAMILIES, family

PROMPTS_FOLDER = CONF / "prompts"
GENERIC = PROMPTS_FOLDER / "generic"
FOLDERS = [PROMPTS_FOLDER / name for name in FAMILIES]
PASSAGES = (
    Passage("gist", 0, "The village wakes up."),
    Passage("page", 1, "The bell rings twelve times."),
    Passage("gist", 2, "Nobody admits it."),
)
QUESTION = "Who rang the bell?"
OPTIONS = ("the sexton", "nobody", "a child", "the wind")
PARSED = {  # replies in no form that are more than a text: lists, JSON, a text after notes
    *("clue_spans", "clue_questions", "key_points", "sub_questions"),
    *("extract_keyphrases", "extract_facts", "extract_events", "time_range"),
    *("note", "answer_chats_con", "refine_query"),
}

OTHERWISE = ("readagent_qmsum",)  # the question first
TEXT_FIRST = [folder for folder in FOLDERS if folder.name not in OTHERWISE]

each_family = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def text(folder: Path, prompt: Prompt[Any]) -> str:
    (message,) = family(folder.name).render(prompt)
    assert message["role"] == "user"
    return message["content"]


def shared_prefix(*texts: str) -> str:
    ends = (i for i, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1)
    return texts[0][: next(ends)]


@each_family
def test_family_passes_its_check(folder: Path) -> None:
    assert check_family(folder, [PROMPTS_FOLDER]) == []


@each_family
def test_family_holds_only_what_differs(folder: Path) -> None:
    for template in folder.glob("*.jinja"):
        generic = GENERIC / template.name
        assert folder == GENERIC or template.read_bytes() != generic.read_bytes()
        words_all = folder == GENERIC or folder.name == "papers"
        assert words_all or not template.name.startswith("_")


@each_family
def test_family_brings_examples_for_every_parser(folder: Path) -> None:
    """Of replies with a form or something to parse, to each prompt that it words itself: there is
    something to tell apart. Generic words all of them; bases bring theirs."""
    layers = family_layers(folder, [PROMPTS_FOLDER])
    if PROMPTS_FOLDER / "papers" not in layers:  # which has generic's replies
        del layers[GENERIC]
    layers = layers or {folder: read_family_file(folder)}
    examples = {k: v for file in reversed(layers.values()) for k, v in file.examples.items()}
    parsed = {name for name, prompt in PROMPTS.items() if prompt.form is not None} | PARSED
    own = {t.stem for layer in layers for t in layer.glob("*.jinja")}
    own |= {name for file in layers.values() for name in file.forms}
    assert own & parsed <= set(examples) <= parsed
    for prompt, replies in examples.items():
        assert len(replies) >= 4, prompt
        assert any(set('*`"_\n') & set(example.reply) for example in replies), prompt


def test_published_settings() -> None:
    """ReadAgent table 10; families that are not in it have generic's."""
    own = {"narrativeqa_gutenberg": (500, 3000), "narrativeqa_movie": (600, 1000)}
    own |= {f"readagent_{name}": words for name, words in own.items()}
    for name in FAMILIES:
        settings = family(name).settings
        assert (settings["min_words"], settings["max_words"]) == own.get(name, (280, 600)), name


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


@each_family
def test_an_expanded_page_changes_nothing_before_it(folder: Path) -> None:
    gists = (*PASSAGES[:2], Passage("page", 2, "The sexton shrugs."))
    first = text(folder, SequentialLookUp(PASSAGES, QUESTION, (), (), ()))
    then = text(folder, SequentialLookUp(gists, QUESTION, (), (2,), ()))
    assert shared_prefix(first, then).endswith("<Page 2>\n")


@each_family
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
