"""No line of our families' templates can be a reply: models repeat examples that they are shown.

The families named after papers show some, as the papers' prompts do.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.core.prompts import PROMPTS, Prompt, rendered_values
from tests.support.reading import FAMILIES, family

OURS = (
    "generic", "chats", "quality", "qmsum", "narrativeqa_gutenberg", "narrativeqa_movie",
    "govreport", "longbench",
)  # fmt: skip
PAPERS = (
    "papers", "memwalker", "memorag", "longmemeval", "readagent", "readagent_quality",
    "readagent_qmsum", "readagent_narrativeqa_gutenberg", "readagent_narrativeqa_movie",
)  # fmt: skip
SENTENCE = "Nothing of the kind is to be found here."


def replies_in(name: str) -> Iterator[tuple[str, str, Any]]:
    """The prompts of a family, each with a line of its rendered samples that the parser reads as a
    value. Lines with a value of the sample are no part of the template; of prompts that take any
    text as a reply every line would do."""
    own = family(name)
    for prompt in PROMPTS.values():
        for sample in prompt.samples():
            if own.read(sample, SENTENCE, is_cut=False) is None and not _has_examples(sample):
                yield from _replies(own, prompt.name, sample)


def _has_examples(sample: Prompt[Any]) -> bool:
    """Ten examples on purpose: `extraction_examples`, which LongMemEval's family alone sets."""
    return bool(getattr(sample, "with_examples", False))


def _replies(own: Any, name: str, sample: Prompt[Any]) -> Iterator[tuple[str, str, Any]]:
    values = [value for value in rendered_values(sample) if value]
    lines = filter(str.strip, own.render(sample)[-1]["content"].splitlines())
    for line in lines:
        is_of_sample = any(value in line or line in value for value in values)
        value = None if is_of_sample else own.read(sample, line, is_cut=False)
        if value is not None:
            yield name, line, value


@pytest.mark.parametrize("name", OURS)
def test_no_line_of_our_prompts_is_a_reply(name: str) -> None:
    assert [*replies_in(name)] == []


def test_every_family_is_ours_or_a_papers() -> None:
    assert {*OURS, *PAPERS} == {*FAMILIES}


@pytest.mark.parametrize("name", PAPERS)
def test_the_families_of_papers_know_the_examples_that_they_show(name: str) -> None:
    shown = {prompt for prompt, line, _ in replies_in(name)
             if line in family(name).examples(PROMPTS[prompt])}  # fmt: skip
    assert {"answer", "break_point", "look_up_p", "look_up_s", "time_range"} <= shown
