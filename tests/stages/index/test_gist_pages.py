"""Gists: one a page in page order, whatever becomes of a reply."""

from pathlib import Path
from typing import Any

import pytest

from stages.index.gist_pages import GistPages
from tests.support.reading import Listener, always, book, content, deadline, run, scripted

STAGE = GistPages(page_breaks=False)
PAGES = ("The bell rings.\n", "Nobody admits it.\n\n", "The sexton shrugs.\n")


def page_of(prompt: str) -> str:
    return prompt.split("The page:\n\n")[1].split("\n\nOne paragraph")[0]


def test_every_page_is_shortened_by_itself_in_page_order() -> None:
    engine = Listener(lambda request: f"\n {page_of(content(request)).split()[1]} is \n")
    made, calls = run(STAGE, book(PAGES), engine)
    assert [(g.page_index, g.gist, g.num_words, g.problem) for g in made] == [
        (0, "bell is", 2, None),
        (1, "admits is", 2, None),
        (2, "sexton is", 2, None),
    ]
    assert [(call.page_index, call.prompt) for call in calls] == [(i, "gist") for i in range(3)]
    assert sorted(page_of(prompt) for prompt in engine.prompts()) == sorted(
        page.strip() for page in PAGES
    )


@pytest.mark.parametrize(
    ("rule", "gist", "num_words", "problem"),
    [
        ({"reply": "It rings and", "finish_reason": "length"}, "It rings and", 3, "truncated"),
        ({"reply": ""}, "", 0, "unparseable"),
        ({"reply": " \n"}, "", 0, "unparseable"),
        ({"reply": "", "finish_reason": "length"}, "", 0, "truncated"),
        ({"reply": "half a", "finish_reason": "abort"}, None, 0, "engine_failed"),
        ({"hang": True}, None, 0, "timeout"),
    ],
)
def test_one_bad_reply_is_one_row_with_a_problem(
    tmp_path: Path, rule: dict[str, Any], gist: str | None, num_words: int, problem: str
) -> None:
    engine = scripted(tmp_path, {"match": "admits", **rule}, {"reply": "fine"})
    made, calls = run(STAGE, book(PAGES), engine, deadline_seconds=deadline(rule))
    assert [g.gist for g in made] == ["fine", gist, "fine"]
    assert (made[1].num_words, made[1].problem) == (num_words, problem)
    assert (made[0].problem, made[2].problem) == (None, None)
    assert [call.reply for call in calls] == ["fine", rule.get("reply", ""), "fine"]


def test_a_page_too_long_for_the_context_or_without_words_is_not_asked_about() -> None:
    pages = ("short ", "long " * 200, " \n\n")
    made, calls = run(
        STAGE, book(pages), always("fine", context_tokens=200), reply_tokens={"gist": 64}
    )
    assert [(gist.gist, gist.problem) for gist in made] == [
        ("fine", None),
        (None, "context_overflow"),
        (None, "empty_input"),
    ]
    assert len(calls) == 1


def test_what_a_gist_copies_of_its_page_is_counted(tmp_path: Path) -> None:
    pages = ("The old bell rings.", "Nobody admits it.", "The sexton shrugs.", " ")
    engine = scripted(
        tmp_path,
        {"match": "bell", "reply": "the bell, it RINGS."},
        {"match": "admits", "hang": True},
        {"match": "sexton", "reply": "No."},
    )
    made, _ = run(STAGE, book(pages), engine, deadline_seconds=deadline({"hang": True}))
    assert [gist.copied for gist in made] == [0.5, None, 0.0, None], "the and rings., of four"
