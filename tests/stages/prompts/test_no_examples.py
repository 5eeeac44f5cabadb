"""No line of our families' templates can be a reply: models repeat examples that they are shown.

The families named after papers show some, as the papers' prompts do; each is listed.
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
LOOK_UP = "I want to look up Page"
COMMON = {
    "answer": {"Answer: (C)"},
    "answer_chats": {"Answer: (C)"},
    "answer_chats_con": {"Answer: (C)"},
    "break_point": {"Break point: <57>"},
    "look_up_p": {
        f"{LOOK_UP} [6] to find out who sent the letter",
        f"{LOOK_UP} [14, 9] to compare what the two sisters said",
    },
    "look_up_s": {"Page 6"},
    "extract_facts": {
        '["The user\'s sister Ann lives in Bern.", "The user paid 40 francs for the repair of a '
        'mountain bike."]'
    },
    "extract_events": {
        '[{"date": "2021/03/07", "event": "The user had a mountain bike repaired in Bern."}]'
    },
    "time_range": {'{"start": "2021/03/01", "end": "2021/03/31"}'},
}
SISTERS = {
    f"{LOOK_UP} [6] to find out who sent the letter",
    f"{LOOK_UP} [9, 14] to compare what the two sisters said",
}
EXAMPLES: dict[str, dict[str, set[str]]] = {
    "papers": {},
    "memwalker": {},
    "memorag": {},
    "longmemeval": {},
    "readagent": {"look_up_p": SISTERS},
    "readagent_quality": {"look_up_p": SISTERS},
    "readagent_qmsum": {"look_up_p": SISTERS, "break_point": {"Label: <57>"}},
    "readagent_narrativeqa_gutenberg": {"break_point": {"Breakpoint: <57>"}},
    "readagent_narrativeqa_movie": {
        "break_point": {"The break point is: <57>"},
        "look_up_s": {f"{LOOK_UP} 6"},
    },
}
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


def test_every_other_family_is_listed() -> None:
    assert {*OURS, *EXAMPLES} == {*FAMILIES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_papers_families(name: str) -> None:
    found: dict[str, set[str]] = {}
    for prompt, line, _ in replies_in(name):
        if line in family(name).examples(PROMPTS[prompt]):
            found.setdefault(prompt, set()).add(line)
    assert found == COMMON | EXAMPLES[name]
