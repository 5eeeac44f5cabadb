"""What holds for every prompt module: a new one is tried by being there."""

import dataclasses
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, Constraint, Prompt
from pipeline.core.settings import CONF
from stages.prompts.answer_question import AnswerQuestion
from tests.support.reading import FAMILIES, family

OURS = [PROMPTS[name] for name in sorted(PROMPTS) if PROMPTS[name].__module__.startswith("stages.")]
SAMPLES = [sample for prompt in OURS for sample in prompt.samples()]
FORMED = [prompt for prompt in OURS if prompt.form is not None]

each_prompt = pytest.mark.parametrize("prompt", OURS, ids=lambda prompt: prompt.name)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
each_family = pytest.mark.parametrize("name", FAMILIES)


def form_of(name: str, prompt: type[Prompt[Any]]) -> str:
    form = family(name).form(prompt)
    assert form is not None
    return form


def leaves(value: Any) -> Iterator[str]:
    """Every value somewhere in a prompt's fields, but how a passage is shown, and what only chooses
    among wordings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner) if key != "kind" else ()
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def values_of(sample: Prompt[Any]) -> set[str]:
    fields = dataclasses.asdict(sample)
    if isinstance(sample, AnswerQuestion) and sample.options:
        del fields["answer_words"]  # a letter has no length
    return set(leaves(fields))


def takes(constraint: Constraint, reply: str) -> bool:
    if constraint.choices:
        return reply in constraint.choices
    return re.fullmatch(constraint.regex, reply) is not None


def test_every_prompt_has_a_generic_template() -> None:
    names = {prompt.name for prompt in OURS}
    assert names == {path.stem for path in (CONF / "prompts" / "generic").glob("[!_]*.jinja")}


@each_prompt
def test_the_samples_set_every_field_somewhere(prompt: type[Prompt[Any]]) -> None:
    for field in dataclasses.fields(prompt):
        assert any(getattr(sample, field.name) for sample in prompt.samples()), field.name


@each_prompt
def test_samples_travel_to_workers(prompt: type[Prompt[Any]]) -> None:
    assert pickle.loads(pickle.dumps(prompt.samples())) == prompt.samples()


@each_family
def test_every_value_is_in_the_rendered_prompt(name: str) -> None:
    for sample in SAMPLES:
        messages = family(name).render(sample)
        roles = [message["role"] for message in messages]
        assert roles == ["user", *["assistant", "user"] * (len(messages) // 2)]
        assert (len(messages) > 1) == bool(sample.follows)
        text = "\n".join(message["content"] for message in messages)
        assert [value for value in values_of(sample) if value not in text] == []
        assert "None" not in text, "no number of a passage without one"


@each_family
def test_the_budget_is_the_familys_or_the_modules(name: str) -> None:
    films = ("narrativeqa_movie", "readagent_narrativeqa_movie")
    own = {(family, "gist"): 128 for family in films}
    own |= {("govreport", "answer"): 1024, ("memorag", "answer"): 256}
    assert {prompt.name: family(name).max_reply_tokens(prompt) for prompt in OURS} == {
        prompt.name: own.get((name, prompt.name), prompt.max_reply_tokens) for prompt in OURS
    }


@each_family
def test_what_forms_are_filled_with_is_read_back(name: str) -> None:
    for prompt in FORMED:
        form, values = form_of(name, prompt), prompt.form_values()
        assert len(values) >= 2
        for text, value in values.items():
            reply = form.replace("{}", text)
            assert family(name).read(prompt.samples()[0], reply, False) == value


@each_prompt
def test_a_prompt_without_a_form_has_nothing_to_fill_in(prompt: type[Prompt[Any]]) -> None:
    legal = [sample.legal("{}") for sample in prompt.samples()]
    assert (prompt.form is None) == (legal == [None] * len(legal)) == (not prompt.form_values())


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


@each_sample
def test_nothing_is_read_in_nothing(sample: Prompt[Any]) -> None:
    for reply in ("", " ", "\n\n"):
        assert sample.read(reply, is_cut=False) is sample.read(reply, is_cut=True) is None


@pytest.mark.parametrize("lost", ["max_reply_tokens", "extractive", "expected", "samples"])
def test_a_prompt_that_is_no_whole_one_is_refused(lost: str) -> None:
    whole = {
        "name": "sing", "max_reply_tokens": 9, "read": lambda self, reply, is_cut: reply,
        "extractive": lambda self: "la", "expected": lambda self: "la",
        "samples": classmethod(lambda cls: (cls(),)),
    }  # fmt: skip
    with pytest.raises(UsageError, match=f"the prompt Sing has no {lost}; write one"):
        type("Sing", (Prompt,), {key: value for key, value in whole.items() if key != lost})
    assert "sing" not in PROMPTS


def test_two_prompts_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"Other is the prompt 'gist', which is that of stages"):
        type("Other", (PROMPTS["gist"],), {"name": "gist", "version": 1})
