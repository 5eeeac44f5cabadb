"""Sequential look-up by hand: a page a turn, what is asked once more, and when it stops."""

from pathlib import Path
from typing import Any, Literal

import pytest

from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.prompts.choose_pages import SequentialLookUp
from stages.retrieve.read_agent import ReadAgentS
from stages.tables.lookups import Dropped, Lookup
from tests.support.reading import (
    always,
    book,
    deadline,
    in_turn,
    looked_up,
    never,
    num_tokens,
    passages,
    question,
    run,
    scripted,
    written_family,
)

QUESTION = "Who rang the bell?"
PAGES = [f"Page text {n} of the {name} bell.\n" for n, name in enumerate("abcdefg")]
GISTS = [f"gist {n}" for n in range(7)]
BOOK = book(PAGES, GISTS, [question()])


BUDGETS = {"look_up_s": 30, "answer": 40}  # reply tokens


def sequential(max_pages: int, first_page: Literal[0, 1] = 0) -> ReadAgentS:
    return ReadAgentS(
        max_pages=max_pages,
        first_page=first_page,
        answer_each_look_up=False,
        answer_words=9,
        answer_page_tags=True,
    )


def turns(max_pages: int, *replies: str, first_page: Literal[0, 1] = 0) -> list[Lookup]:
    """The rows made of these replies; one request more than that fails."""
    made, _ = run(sequential(max_pages, first_page), BOOK, in_turn(*replies))
    return made


def test_a_page_a_turn_until_stop() -> None:
    assert turns(3, "Page 4", "Page [0] for the bell", "STOP") == [
        looked_up(4),
        looked_up(0, turn=1),
        looked_up(turn=2),
    ]


def test_pages_read_are_shown_in_place_and_listed() -> None:
    engine = in_turn("Page 4", "Page 0", "STOP")
    run(sequential(3), BOOK, engine)
    first, second, third = engine.prompts()
    assert "Page text" not in first
    assert "in full already" not in first
    raw = PAGES[4].strip()
    assert f"<Page 3>\ngist 3\n\n<Page 4>\n{raw}\n\n<Page 5>\ngist 5\n\n" in second
    assert "choose another: 4\n" in second
    assert f"<Page 0>\n{PAGES[0].strip()}\n\n<Page 1>\ngist 1\n\n" in third
    assert "choose another: 4, 0\n" in third
    assert "gist 0" not in third
    assert "gist 4" not in third
    assert not any("could not be given" in prompt for prompt in (first, second, third))


def test_rows_hold_indexes_where_the_family_counts_from_1() -> None:
    engine = in_turn("Page 7", "Page 8", "Page 1")
    made, _ = run(sequential(2, first_page=1), BOOK, engine)
    assert made == [
        looked_up(6),
        looked_up(0, turn=1, requested=(7, 0), dropped=(Dropped(7, "out_of_range"),)),
    ]
    assert "choose another: 7\n" in engine.prompts()[1]
    assert "no such page: 8\n" in engine.prompts()[2]


@pytest.mark.parametrize(
    ("asked", "index", "reason"),
    [("Page 7", 7, "out_of_range"), ("Page 4", 4, "duplicate")],
)
def test_a_refused_page_is_asked_about_once_more(asked: str, index: int, reason: str) -> None:
    engine = in_turn("Page 4", asked, "Page 2", "STOP")
    made, calls = run(sequential(5), BOOK, engine)
    drop = Dropped(index, reason)
    second = looked_up(2, turn=1, requested=(index, 2), dropped=(drop,))
    assert made == [looked_up(4), second, looked_up(turn=2)]
    assert [(call.turn, call.attempt) for call in calls] == [(0, 1), (1, 1), (1, 2), (2, 1)]
    shown = [f"no such page: {index}\n" in prompt for prompt in engine.prompts()]
    assert shown == [False, False, True, False]


@pytest.mark.parametrize(
    ("again", "index", "reason"),
    [("Page 7", 7, "out_of_range"), ("Page 4", 4, "duplicate")],
)
def test_refused_twice_it_stops(again: str, index: int, reason: str) -> None:
    drops = (Dropped(4, "duplicate"), Dropped(index, reason))
    assert turns(5, "Page 4", "Page 4", again) == [
        looked_up(4),
        looked_up(turn=1, requested=(4, index), dropped=drops),
    ]


@pytest.mark.parametrize("prompts", ["generic", "narrativeqa_movie"])
def test_what_is_asked_once_more_says_what_was_wrong(tmp_path: Path, prompts: str) -> None:
    """Without sampling the same prompt would only get the same reply."""
    rules = {"match": "reply named no page", "reply": "Page 3"}, {"reply": "Near the end."}
    made, calls = run(sequential(1), BOOK, scripted(tmp_path, *rules), prompts=prompts)
    assert made == [looked_up(3)]
    assert [call.reply for call in calls] == ["Near the end.", "Page 3"]
    refused = {"match": "no such page: 9\n", "reply": "Page 3"}, {"reply": "Page 9"}
    made, calls = run(sequential(1), BOOK, scripted(tmp_path, *refused), prompts=prompts)
    assert made == [looked_up(3, requested=(9, 3), dropped=(Dropped(9, "out_of_range"),))]
    assert [call.reply for call in calls] == ["Page 9", "Page 3"]


def test_a_family_that_says_nothing_of_it_is_not_asked_the_same_again(tmp_path: Path) -> None:
    folder = written_family(tmp_path, "{}")
    (folder / "look_up_s.jinja").write_text("{{ passages }} {{ question }} Which page?")
    found = load_family(folder, [CONF / "prompts"])
    made, calls = run(sequential(1), BOOK, in_turn("Hm."), prompts=found)
    assert made == [looked_up(problem="unparseable")]
    assert len(calls) == 1
    made, calls = run(sequential(1), BOOK, in_turn("Hm.", "Page 3"), prompts=found, temperature=0.7)
    assert made == [looked_up(3)]
    assert len(calls) == 2


def test_unreadable_twice_keeps_what_was_read() -> None:
    made, calls = run(sequential(5), BOOK, in_turn("Page 3", "Hm.", ""))
    assert made == [looked_up(3), looked_up(turn=1, problem="unparseable")]
    assert [(call.turn, call.attempt) for call in calls] == [(0, 1), (1, 1), (1, 2)]


@pytest.mark.parametrize("replies", [("Hm.", "Page 9"), ("Page 9", "Hm.")])
def test_one_readable_of_two_is_a_stop(replies: tuple[str, str]) -> None:
    drop = Dropped(9, "out_of_range")
    assert turns(5, *replies) == [looked_up(requested=(9,), dropped=(drop,))]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"reply": "Page 2, since", "finish_reason": "length"}, looked_up(2)),
        ({"reply": "Let me see", "finish_reason": "length"}, looked_up(problem="truncated")),
        ({"reply": "Page 2", "finish_reason": "abort"}, "engine_failed"),
        ({"hang": True}, "timeout"),
    ],
)
def test_cut_and_missing_replies(
    tmp_path: Path, rule: dict[str, Any], expected: Lookup | str
) -> None:
    made, _ = run(sequential(1), BOOK, scripted(tmp_path, rule), deadline_seconds=deadline(rule))
    if isinstance(expected, str):
        expected = looked_up(used=None, requested=(), problem=expected)
    assert made == [expected]


def test_a_reply_missing_later_fails_the_question(tmp_path: Path) -> None:
    rules = {"match": "already", "finish_reason": "abort"}, {"reply": "Page 2"}
    made, _ = run(sequential(3), BOOK, scripted(tmp_path, *rules))
    failed = looked_up(turn=1, used=None, requested=(), problem="engine_failed")
    assert made == [looked_up(2), failed]


def tokens(read: tuple[int, ...], refused: tuple[int, ...] = ()) -> int:
    return num_tokens(SequentialLookUp(passages(BOOK, read), QUESTION, (), read, refused))


def test_a_gist_memory_that_does_not_fit_is_not_asked_about() -> None:
    made, _ = run(sequential(3), BOOK, always("STOP", tokens(()) + 30), reply_tokens=BUDGETS)
    assert made == [looked_up()]
    made, calls = run(sequential(3), BOOK, always("STOP", tokens(()) + 29), reply_tokens=BUDGETS)
    assert made == [looked_up(used=None, requested=(), problem="context_overflow")]
    assert calls == ()


def test_it_stops_where_the_next_page_would_not_fit() -> None:
    room = tokens((4, 0)) + 40  # 40 for the answer
    engine = in_turn("Page 4", "Page 0", context_tokens=room)
    made, _ = run(sequential(2), BOOK, engine, reply_tokens=BUDGETS)
    assert made == [looked_up(4), looked_up(0, turn=1)]
    engine = in_turn("Page 4", "Page 0", context_tokens=room - 1)
    made, _ = run(sequential(2), BOOK, engine, reply_tokens=BUDGETS)
    full = looked_up(turn=1, requested=(0,), dropped=(Dropped(0, "no_room"),), used=())
    assert made == [looked_up(4), full]


def test_it_stops_at_the_page_that_would_pass_the_budget() -> None:
    """Gists of two words, pages of seven: 5 more each."""
    whole = len(" ".join(GISTS).split())
    for budget, read in ((whole + 10, (4, 0)), (whole + 9, (4,))):
        stage = sequential(2).model_copy(update={"budget": budget})
        made, _ = run(stage, BOOK, in_turn("Page 4", "Page 0"))
        assert tuple(page for turn in made for page in turn.used) == read
    full = looked_up(turn=1, requested=(0,), dropped=(Dropped(0, "no_room"),), used=())
    assert made == [looked_up(4), full]
    stage = sequential(2).model_copy(update={"budget": whole - 1})
    assert run(stage, BOOK, never()) == ([looked_up()], ())


def test_questions_do_not_see_each_other_s_pages(tmp_path: Path) -> None:
    rows = book(PAGES, GISTS, [question("b", "Where?"), question("a", "When?")])
    engine = scripted(
        tmp_path,
        {"match": "Where.*another: 1\n", "reply": "STOP"},
        {"match": "When.*another: 6\n", "reply": "Page 5"},
        {"match": "Where", "reply": "Page 1", "seconds": 0.02},
        {"match": "When.*another: 6, 5\n", "reply": "STOP"},
        {"match": "When", "reply": "Page 6"},
    )
    made, _ = run(sequential(3), rows, engine)
    assert [(row.question_id, row.turn, row.used) for row in made] == [
        ("b", 0, (1,)), ("b", 1, ()), ("a", 0, (6,)), ("a", 1, (5,)), ("a", 2, ()),
    ]  # fmt: skip


def answering(max_pages: int, tags: bool = True) -> ReadAgentS:
    return ReadAgentS(
        max_pages=max_pages, first_page=0, answer_each_look_up=True, answer_words=9,
        answer_page_tags=tags,
    )  # fmt: skip


def test_an_answer_so_far_is_shown_to_each_look_up() -> None:
    """Answer, look-up, answer, look-up: the second answer has page 4 in front of it."""
    engine = in_turn("Nobody did.", "Page 4", "The sexton did.", "STOP")
    made, calls = run(answering(3), BOOK, engine)
    assert made == [looked_up(4), looked_up(turn=1)]
    assert [call.prompt for call in calls] == ["answer", "look_up_s"] * 2
    prompts = [request.messages[0]["content"] for request in engine.requests]
    assert "would be: Nobody did." in prompts[1] and "sexton" not in prompts[1]
    assert PAGES[4].strip() in prompts[2] and PAGES[4].strip() not in prompts[0]
    assert "would be: The sexton did." in prompts[3]


def test_the_answers_so_far_may_be_asked_for_without_page_tags() -> None:
    engine = in_turn("Nobody did.", "Page 4", "The sexton did.", "STOP")
    run(answering(3, tags=False), BOOK, engine)
    tagged = ["<Page 4>" in prompt for prompt in engine.prompts()]
    assert tagged == [False, True, False, True]
    assert PAGES[4].strip() in engine.prompts()[2]
