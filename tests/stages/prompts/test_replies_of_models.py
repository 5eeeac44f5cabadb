"""Replies in the notations that families of models give, each with what a person reads in it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.engine import Reply, without_thinking
from pipeline.core.prompts import PROMPTS, Prompt
from stages.prompts.memwalker.read_leaf import ReadLeaf
from stages.prompts.readagent.answer import AnswerQuestion
from tests.support.command import DATA
from tests.support.reading import family

LINES = (DATA / "replies_forms.jsonl").read_text(encoding="utf-8").splitlines()
ROWS = [json.loads(line) for line in LINES]


def prompt_of(name: str) -> Prompt[Any]:
    kind, _, about = name.partition(" ")
    prompt = PROMPTS[kind].samples()[0]
    if about == "(free)":
        assert isinstance(prompt, AnswerQuestion | ReadLeaf)
        return replace(prompt, options=())
    return prompt


def read(prompt: Prompt[Any], text: str, is_cut: bool) -> Any:
    reply = without_thinking(Reply(text=text, finish_reason="length" if is_cut else "stop"))
    value = family().read(prompt, reply.text, is_cut)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['prompt']}: {row['form']}")
def test_what_a_person_reads(row: dict[str, Any]) -> None:
    value = read(prompt_of(row["prompt"]), row["reply"], row.get("cut", False))
    assert value == row["person_reads"], row["reply"]
