"""Values that are no legal ones: they can be read, but were not on offer."""

from typing import Any

import pytest

from pipeline.core.prompts import Prompt
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.choose_pages import ParallelLookUp, SequentialLookUp
from stages.prompts.memwalker import ReadLeaf, Triage
from stages.prompts.pages_and_gists import BreakPoint, Labelled
from stages.prompts.passages import Passage
from tests.support.reading import family

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
