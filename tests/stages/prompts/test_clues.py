"""Prompts whose replies are searched for: what they show, and how items of a line each are read."""

import pytest

from pipeline.engines.extractive import num_tokens
from stages.prompts.answer import Passage
from stages.prompts.memorag import (
    ChunkGist,
    ClueSpans,
    DraftAnswer,
    Hypothetical,
    KeyPoints,
    LinesFromMemory,
    SubQuestions,
)

STORY = (
    "The village wakes up slowly on a cold and rainy morning in May. "
    "The sexton rang the bell twelve times although nobody had asked him to do so. "
    "The baker sold his bread to travellers who came over the old stone bridge. "
    "Nobody admits afterwards to the mayor that they heard anything at all that night."
)


def shown(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage("text", None, text) for text in texts)


def said(prompt: LinesFromMemory | SubQuestions) -> tuple[str, ...]:
    """What is read of the reply without a model."""
    return prompt.read(prompt.extractive(), False) or ()


def test_spans_are_the_sentences_that_match_best() -> None:
    read = said(ClueSpans(shown(STORY), "Who rang the bell?", ()))
    assert len(read) == 3 and read[0].startswith("The sexton rang the bell twelve times although")
    assert all(line in STORY for line in read)
    bread = said(ClueSpans(shown(STORY), "What was sold?", ("fish", "bread")))
    assert bread[0].startswith("The baker sold his bread")


def test_key_points_come_from_all_parts() -> None:
    everyone = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
    told = [f"{name} said many things about the bell and the rope on that day. "
            for name in everyone]  # fmt: skip
    points = said(KeyPoints(shown("".join(told[:5]), "".join(told[5:])), "", ()))
    assert [line.split()[0] for line in points] == everyone


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who rang the bell?", ("Who rang the bell?",)),
        ("Who rang the bell and who heard it?", ("Who rang the bell", "who heard it")),
        ("When? Where; by whom, and why?", ("When", "Where", "by whom", "and why?")),
        ("a, b, c, d, e and f", ("a", "b", "c", "d, e and f")),
        ("Did 1,000 people\nhear it?", ("Did 1,000 people hear it?",)),
        ("谁敲了钟？谁听到了？", ("谁敲了钟", "谁听到了")),
        ("", ()),
    ],
)
def test_the_parts_of_a_question(question: str, parts: tuple[str, ...]) -> None:
    assert said(SubQuestions(question, ())) == parts


def test_a_question_as_a_statement() -> None:
    for question, options, statement in (
        ("Who rang the bell?", (), "rang the bell."),
        ("Did he ring it?", ("yes", "no"), "Did he ring it: yes or no."),
        ("Whoever rang it?", (), "Whoever rang it."),
    ):
        prompt = Hypothetical(question, options)
        assert prompt.extractive() == statement
        assert len(prompt.expected().split()) == 100


def test_what_is_cut_off_can_still_be_searched_for() -> None:
    assert ClueSpans(shown(STORY), "", ()).read("1. The bell\n2. The rop", True) == ("The bell",)
    for prompt in (DraftAnswer(shown(STORY), "Who?", ()), Hypothetical("Who?", ())):
        assert prompt.read(" The sexton ra", True) == "The sexton ra"
        assert not prompt.is_whole
    assert ChunkGist.is_whole


def test_a_chunks_gist() -> None:
    sentence = "In year {0} the sexton {0} rang the bell of tower {0} for the whole village. "
    chunk = "".join(sentence.format(number) for number in range(200))
    made = ChunkGist(chunk).extractive()
    assert 0.08 * len(chunk.split()) <= len(made.split()) <= 0.12 * len(chunk.split())
    assert num_tokens(made) <= ChunkGist.max_reply_tokens
    assert ChunkGist("A short one. It has two sentences.").extractive() == (
        "A short one. It has two sentences."
    )
