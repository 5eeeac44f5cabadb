"""The extractive engine's replies: their grammar, their sense, odd inputs and the budget."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Prompt
from pipeline.engines.extractive import ExtractiveEngine
from stages.prompts.answer import AnswerQuestion, Passage, parse_option
from stages.prompts.judging import PermissiveRating, StrictRating
from stages.prompts.readagent_look_up import (
    ParallelLookUp,
    SequentialLookUp,
    parse_pages,
)
from stages.prompts.readagent_memory import BreakPoint, Labelled, PageGist
from tests.support.engines.tiny_model import meeting_texts

WHALES = "The whale swam under the ship. Every whale fears the harpoon of the ship."
BREAD = "The baker kneads dough at night. Fresh bread fills the bakery window."
PASSAGES = (
    Passage("gist", 1, "The baker opened his shop."),
    Passage("gist", 2, "A storm broke the mast of the ship."),
    Passage("page", 3, "The captain saw a whale. The whale hit the ship, and the ship sank."),
    Passage("gist", 4, "Bread was sold in the harbour."),
)
QUESTION = "Which whale hit the ship?"
LOOK_UP_P = ParallelLookUp(PASSAGES, QUESTION, (), 2)
LOOK_UP_S = SequentialLookUp(PASSAGES, QUESTION, (), (), ())
ANSWER = AnswerQuestion(PASSAGES, QUESTION, (), 72)


def ask(fields: Prompt[Any], max_reply_tokens: int = 1000) -> Reply:
    messages = ({"role": "user", "content": "Say, what is it?"},)
    request = Request(
        prompt=fields.name,
        fields=fields,
        messages=messages,  # type: ignore[arg-type]  # plain dicts will do
        max_reply_tokens=max_reply_tokens,
    )
    return asyncio.run(ExtractiveEngine().generate(request))


def window(*texts: str) -> tuple[Labelled, ...]:
    return tuple(Labelled(text, label) for label, text in enumerate(texts, start=7))


def test_the_reply_is_counted_and_timed() -> None:
    """Tokens are words and signs."""
    reply = ask(LOOK_UP_S)
    assert (reply.text, reply.finish_reason) == ("Page 3", "stop")
    assert (reply.prompt_tokens, reply.reply_tokens, reply.cached_tokens) == (6, 2, 0)
    assert 0 <= reply.seconds < 1 and reply.problem is None


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_the_budget_cuts_the_reply(budget: int) -> None:
    whole, cut = ask(ANSWER), ask(ANSWER, budget)
    assert (cut.finish_reason, cut.reply_tokens) == ("length", budget)
    assert whole.text.startswith(cut.text)
    assert ask(ANSWER, whole.reply_tokens).finish_reason == "stop"


@pytest.mark.parametrize(
    ("paragraphs", "label"),
    [(window(WHALES, WHALES, BREAD, BREAD), 8),  # where the words change
     ((), None), ((Labelled(WHALES, None),), None), ((Labelled(WHALES, 9),), 9),
     ((Labelled(WHALES, None), Labelled(BREAD, 2), Labelled(BREAD, 3)), 2),
     (window("", ""), 7), (window("中文。", "中文。", "雨雪。"), 8)],
)  # fmt: skip
def test_a_page_ends_where_the_words_change(
    paragraphs: tuple[Labelled, ...], label: int | None
) -> None:
    prompt = BreakPoint("", paragraphs)
    assert prompt.read(prompt.extractive(), False) == label


def test_a_gist_is_a_part_of_its_page_without_tags() -> None:
    words = "\n".join(meeting_texts()).split(" ")
    for start in range(0, 8600, 1720):
        page = " ".join(words[start : start + 430])
        gist = PageGist(page).extractive()
        clean = " ".join(re.sub(r"\{[^{}]*\}", " ", page).split())
        assert 40 <= len(gist.split()) <= 110
        assert "{" not in gist and "  " not in gist and not clean.startswith(gist)
        assert set(gist.split()) <= set(clean.split())


@pytest.mark.parametrize(
    ("passages", "max_pages", "pages"),
    [
        (PASSAGES, 2, (3, 2)),
        (PASSAGES, 9, (3, 2, 1, 4)),
        ((), 2, ()),
        ((Passage("text", None, WHALES),), 2, ()),
        ((Passage("gist", 5, ""), Passage("gist", 6, "")), 2, (5, 6)),
    ],
)
def test_the_pages_asked_for_are_the_best_first(
    passages: tuple[Passage, ...], max_pages: int, pages: tuple[int, ...]
) -> None:
    fields = replace(LOOK_UP_P, passages=passages, max_pages=max_pages)
    assert parse_pages(fields.extractive()) == pages


@pytest.mark.parametrize(
    ("read", "refused", "page"),
    [((), (), 3), ((3,), (), 2), ((), (3,), 2), ((2, 3), (), "stop"), ((3,), (2, 1, 4), "stop")],
)
def test_pages_one_by_one(read: tuple[int, ...], refused: tuple[int, ...], page: int | str) -> None:
    fields = replace(LOOK_UP_S, pages_read=read, refused=refused)
    assert fields.read(fields.extractive(), False) == page
    assert replace(fields, question="Who?").extractive() == "STOP", "no page speaks of it"


def test_the_answer_is_the_best_sentence_first_of_all() -> None:
    answer = replace(ANSWER, answer_words=16).extractive()
    assert answer == "The whale hit the ship, and the ship sank."


@pytest.mark.parametrize("text", ["", "{gap}", " \n "])
def test_nothing_read_is_said_so(text: str) -> None:
    for passages in ((), (Passage("page", 1, text),)):
        answer = replace(ANSWER, passages=passages, answer_words=10).extractive()
        assert answer == "Nothing read says: Which whale hit the ship?"
        assert replace(ANSWER, passages=passages, question="").extractive() == "Nothing was read."


def test_the_option_that_the_text_speaks_of() -> None:
    fields = replace(
        ANSWER, question="What was sold?", options=("a coat", "a very old lamp", "bread")
    )
    assert fields.extractive() == "Answer: (C)"
    assert parse_option(fields.extractive(), 3) == 2
    longest = replace(fields, passages=(), options=("a coat", "a very old lamp", "a very big lamp"))
    assert longest.extractive() == "Answer: (B)", "without a text"
    assert parse_option(replace(longest, options=("",) * 40).extractive(), 40) == 0


@pytest.mark.parametrize(
    ("answer", "reference", "strict", "permissive"),
    [
        ("The whale sank the ship.", "A ship was sunk by the whale", "yes", "yes"),
        ("Bread was baked", "The whale sank the ship", "no", "no"),
        ("The whale swam away to the cold north sea", "The whale sank ships", "no", "partially"),
        ("", "whale", "no", "no"),
        ("Yes.", "yes", "yes", "yes"),
    ],
)
def test_ratings(answer: str, reference: str, strict: str, permissive: str) -> None:
    for prompt, verdict in ((StrictRating, strict), (PermissiveRating, permissive)):
        rating = prompt("?", answer, reference)
        assert rating.read(rating.extractive(), False) == verdict
