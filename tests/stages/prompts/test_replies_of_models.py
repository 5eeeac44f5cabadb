"""Replies in words and notations that models use, and those of real models in real runs, each with
what a person reads in it.

Real replies (tests/data/SOURCES.md) are labelled before a parser sees them. `fills` is what their
prompts had on offer: labels, the number of options, pages.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.engine import Reply, without_thinking
from pipeline.core.prompts import PROMPTS, Prompt, Refusals
from pipeline.core.reply_forms import plain_text
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.memwalker import ReadLeaf
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import BreakPoint, Labelled
from tests.support.command import DATA
from tests.support.reading import family


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def prompt_of(name: str, fills: Mapping[str, Any]) -> Prompt[Any]:
    kind, _, about = name.partition(" ")
    prompt = PROMPTS[kind].samples()[0]
    if about == "(free)":
        assert isinstance(prompt, AnswerQuestion | ReadLeaf)
        return replace(prompt, options=())
    if isinstance(prompt, AnswerQuestion) and "options" in fills:
        return replace(prompt, options=tuple(f"one of {n}" for n in range(fills["options"])))
    if isinstance(prompt, BreakPoint) and "labels" in fills:
        return replace(prompt, paragraphs=tuple(Labelled("A.", n) for n in fills["labels"]))
    if isinstance(prompt, ParallelLookUp) and "pages" in fills:
        gists = (Passage("gist", number, "A.") for number in range(fills["pages"]))
        return replace(prompt, passages=tuple(gists), max_pages=fills["max_pages"])
    return prompt


def read(prompt: Prompt[Any], text: str, is_cut: bool) -> Any:
    reply = without_thinking(Reply(text=text, finish_reason="length" if is_cut else "stop"))
    value = family().read(prompt, reply.text, is_cut)
    return json.loads(json.dumps(value))  # tuples as lists


@pytest.mark.parametrize(
    "row", rows("replies_forms.jsonl"), ids=lambda row: f"{row['prompt']}: {row['form']}"
)
def test_what_a_person_reads(row: dict[str, Any]) -> None:
    value = read(prompt_of(row["prompt"], {}), row["reply"], row.get("cut", False))
    assert value == row["person_reads"], row["reply"]


@pytest.mark.parametrize("row", rows("replies_real.jsonl"), ids=lambda row: row["prompt"])
def test_what_a_person_reads_in_a_reply_of_a_run(row: dict[str, Any]) -> None:
    prompt = prompt_of(row["prompt"], row["fills"])
    value = read(prompt, row["reply"], row.get("cut", False))
    assert value == row["person_reads"], row["reply"]
    if labels := row["fills"].get("labels"):
        assert value is None or prompt.is_legal(value) == (value in labels)


def test_other_words_refuse_in_other_families() -> None:
    look_up, english = ParallelLookUp.samples()[0], family().refusals["look_up_p"]
    words = Refusals(negations=("keine",), needed=("seite",), enough=("genug",), alone=("nichts",))
    for reply in ("Ich brauche keine weitere Seite.", "Das ist genug.", "Nichts."):
        assert look_up.refusal(plain_text(reply), words) == ()
        assert look_up.refusal(plain_text(reply), english) is None
    assert look_up.refusal("No page is needed.", words) is None
