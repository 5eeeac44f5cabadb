"""Engines without a model. The extractive one's replies: their grammar, their sense, odd inputs and
the budget. The scripted one follows its script (that replies take their time, hang or die is in
tests/faults, that a wrong script is one line in tests/jobs/cli)."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.engine import Reply
from pipeline.core.prompts import Prompt
from pipeline.engines.extractive import ExtractiveEngine
from stages.prompts.answer import AnswerQuestion, Passage, parse_option
from stages.prompts.judging import PermissiveRating, StrictRating
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.prompts.readagent_memory import BreakPoint, Labeled, PageGist
from tests.support.engines.tiny_model import meeting_texts
from tests.support.reading import request, scripted

WHALES = "The whale swam under the ship. Every whale fears the harpoon of the ship."
BREAD = "The baker kneads dough at night. Fresh bread fills the bakery window."
PASSAGES = (
    Passage("gist", 1, "The baker opened his shop."),
    Passage("gist", 2, "A storm broke the mast of the ship."),
    Passage("page", 3, "The captain saw a whale. The whale hit the ship, and the ship sank."),
    Passage("gist", 4, "Bread was sold in the harbour."),
)
QUESTION = "Which whale hit the ship?"
ANSWER = AnswerQuestion(PASSAGES, QUESTION, (), 16)


def labelled(*texts: str) -> tuple[Labeled, ...]:
    return tuple(Labeled(text, label) for label, text in enumerate(texts, start=7))


def reply(max_reply_tokens: int = 1000) -> Reply:
    asked = request("Say, what is it?", max_reply_tokens, prompt=ANSWER.name, fields=ANSWER)
    return asyncio.run(ExtractiveEngine().generate(asked))


def test_the_reply_is_counted_timed_and_cut_at_the_budget() -> None:
    """Tokens are words and signs."""
    whole = reply()
    assert whole.text == "The whale hit the ship, and the ship sank."
    assert whole.finish_reason == "stop"
    assert (whole.prompt_tokens, whole.reply_tokens, whole.cached_tokens) == (6, 11, 0)
    assert 0 <= whole.seconds < 1
    assert whole.problem is None
    for budget in (0, 1, 5):
        cut = reply(budget)
        assert (cut.finish_reason, cut.reply_tokens) == ("length", budget)
        assert whole.text.startswith(cut.text)
    assert reply(11).finish_reason == "stop"


def test_a_gist_is_a_part_of_its_page_without_tags() -> None:
    words = "\n".join(meeting_texts()).split(" ")
    for start in range(0, 8600, 1720):
        page = " ".join(words[start : start + 430])
        gist = PageGist(page).extractive()
        clean = " ".join(re.sub(r"\{[^{}]*\}", " ", page).split())
        assert 40 <= len(gist.split()) <= 110
        assert "{" not in gist and "  " not in gist and not clean.startswith(gist)
        assert set(gist.split()) <= set(clean.split())


def sequential(read: tuple[int, ...], refused: tuple[int, ...], asking: str = QUESTION) -> Any:
    return SequentialLookUp(PASSAGES, asking, (), read, refused)


WHAT = replace(ANSWER, question="What was sold?", options=("a coat", "a very old lamp", "bread"))
LONGEST = replace(WHAT, passages=(), options=("a coat", "a very old lamp", "a very big lamp"))
VALUES: list[tuple[Prompt[Any], Any]] = [
    # A page ends where the words change.
    *((BreakPoint("", paragraphs), label) for paragraphs, label in (
        (labelled(WHALES, WHALES, BREAD, BREAD), 8),
        ((Labeled(WHALES, 9),), 9),
        ((Labeled(WHALES, None), Labeled(BREAD, 2), Labeled(BREAD, 3)), 2),
        (labelled("", ""), 7), (labelled("中文。", "中文。", "雨雪。"), 8))),
    # The best pages come first.
    *((ParallelLookUp(passages, QUESTION, (), max_pages), best) for passages, max_pages, best in (
        (PASSAGES, 2, (3, 2)), (PASSAGES, 9, (3, 2, 1, 4)), ((), 2, ()),
        ((Passage("text", None, WHALES),), 2, ()),
        ((Passage("gist", 5, ""), Passage("gist", 6, "")), 2, (5, 6)))),
    (sequential((), ()), 3), (sequential((3,), ()), 2), (sequential((), (3,)), 2),
    (sequential((2, 3), ()), "stop"), (sequential((3,), (2, 1, 4)), "stop"),
    (sequential((), (), "Who?"), "stop"),  # no page speaks of it
    # The option that the text speaks of; without a text the longest, of equal ones the first.
    (WHAT, 2), (LONGEST, 1), (replace(LONGEST, options=("",) * 40), 0),
    *((rating("?", answer, reference), verdict)
      for answer, reference, strict, permissive in (
        ("The whale sank the ship.", "A ship was sunk by the whale", "yes", "yes"),
        ("Bread was baked", "The whale sank the ship", "no", "no"),
        ("The whale swam away to the cold north sea", "The whale sank ships", "no", "partially"),
        ("", "whale", "no", "no"),
        ("Yes.", "yes", "yes", "yes"))
      for rating, verdict in ((StrictRating, strict), (PermissiveRating, permissive))),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "value"), VALUES)
def test_what_is_read_in_the_reply_to_each_prompt(prompt: Prompt[Any], value: Any) -> None:
    read = prompt.read(prompt.extractive(), False)
    if isinstance(prompt, AnswerQuestion):
        read = parse_option(prompt.extractive(), len(prompt.options))
    assert read == value


@pytest.mark.parametrize("text", ["", "{gap}", " \n "])
def test_nothing_read_is_said_so(text: str) -> None:
    for passages in ((), (Passage("page", 1, text),)):
        answer = replace(ANSWER, passages=passages, answer_words=10).extractive()
        assert answer == "Nothing read says: Which whale hit the ship?"
        assert replace(ANSWER, passages=passages, question="").extractive() == "Nothing was read."


def test_the_first_rule_that_fits_answers(tmp_path: Path) -> None:
    """A pattern is searched over lines; tokens are words."""
    engine = scripted(
        tmp_path,
        {"prompt": "answer", "match": "Who wrote", "reply": "Answer: (B)"},
        {"prompt": "answer", "reply": "Answer: (A)"},
        {"match": "page \\d+", "reply": "a page of four words", "finish_reason": "length",
         "seconds": 0.05},
        {"match": "first.*second", "attempt": 2, "reply": "again"},
    )  # fmt: skip
    lines = ("the first\nline", "the second message")
    two = [{"role": "user", "content": content} for content in lines]
    requests = (
        request("Who wrote it?", prompt="answer"), request("Who read it?", prompt="answer"),
        request("Who wrote\npage 12?"), request(messages=two, attempt=2), request(messages=two),
    )  # fmt: skip
    replied = [asyncio.run(engine.generate(each)) for each in requests]
    assert [(reply.text, reply.finish_reason) for reply in replied] == [
        ("Answer: (B)", "stop"), ("Answer: (A)", "stop"), ("a page of four words", "length"),
        ("again", "stop"), ("", "abort"),
    ]  # fmt: skip
    third = replied[2]
    assert (third.prompt_tokens, third.reply_tokens, third.cached_tokens) == (4, 5, 0)
    assert 0.05 <= third.seconds < 5
    assert asyncio.run(engine.count_tokens([{"role": "user", "content": ""}])) == 0
