"""Gists: one a page in page order, whatever becomes of a reply."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import AccountingError
from stages.index.gist_pages import GistPages
from tests.support.reading import (
    NASTY,
    Listener,
    always,
    book,
    content,
    deadline,
    never,
    run,
    scripted,
)

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


def test_slow_replies_do_not_change_the_order(tmp_path: Path) -> None:
    rules: list[dict[str, Any]] = [
        {"match": "bell", "reply": "one", "seconds": 0.05},
        {"match": "admits", "reply": "two", "seconds": 0.02},
        {"reply": "three"},
    ]
    made, calls = run(STAGE, book(PAGES), scripted(tmp_path, *rules))
    assert [gist.gist for gist in made] == ["one", "two", "three"]
    assert [call.reply for call in calls] == ["one", "two", "three"]


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


def test_a_page_too_long_for_the_context_is_not_asked_about() -> None:
    pages = ("short ", "long " * 200)
    made, calls = run(
        STAGE, book(pages), always("fine", context_tokens=200), reply_tokens={"gist": 64}
    )
    assert [(gist.gist, gist.problem) for gist in made] == [
        ("fine", None),
        (None, "context_overflow"),
    ]
    assert len(calls) == 1


def test_a_page_without_words_is_not_asked_about() -> None:
    (gist,), _ = run(STAGE, book([" \n\n"]), never())
    assert (gist.gist, gist.problem) == (None, "empty_input")


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


def test_no_pages_no_gists() -> None:
    assert run(STAGE, book([]), never()) == ([], ())


@pytest.mark.parametrize("prompts", ["generic", "qmsum", "narrativeqa_movie"])
def test_the_page_is_shown_verbatim(prompts: str) -> None:
    page = f"CHAPTER V\n\n{NASTY}\n<5>\nPage 3: 'Why?'  two  spaces"
    engine = always(NASTY)
    (gist,), _ = run(STAGE, book([page]), engine, prompts)
    assert f":\n\n{page}" in engine.prompts()[0]
    assert gist.gist == NASTY


def test_gists_must_match_the_pages() -> None:
    made, _ = run(STAGE, book(PAGES), always("fine"))
    extra = replace(made[2], page_index=3)
    for wrong in (made[:2], made[1:], [*made, extra], made[::-1], [*made, made[2]], []):
        with pytest.raises(AccountingError, match="gists do not match pages"):
            STAGE.check(book(PAGES), wrong)


def test_a_failed_unit_has_a_row_for_every_page() -> None:
    made = STAGE.failed(book(PAGES), "unit_failed", "a line of ours")
    STAGE.check(book(PAGES), made)
    assert [(g.page_index, g.gist, g.problem, g.detail) for g in made] == [
        (i, None, "unit_failed", "a line of ours") for i in range(3)
    ]


def test_what_no_file_can_hold_is_replaced() -> None:
    """Half a surrogate pair, as JSON can escape it."""
    gists, calls = run(
        GistPages(page_breaks=False), book(["The bell rings."]), always("a \ud83d b")
    )
    assert gists[0].gist == calls[0].reply == "a \ufffd b"
    calls[0].reply.encode()
