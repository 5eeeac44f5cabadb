"""Look-ups of pages by hand: all at once, or one a turn; what is asked again, and when it stops."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.prompts.readagent_look_up import ParallelLookUp, SequentialLookUp
from stages.retrieve.read_agent import ReadAgentP, ReadAgentS
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

PAGES = [f"Page text {n} of the {name} bell.\n" for n, name in enumerate("abcdefg")]
GISTS = [f"gist {n}" for n in range(7)]
QUESTION = question().question
BOOK = book(PAGES, GISTS, [question()])
BUDGETS = {"look_up_p": 30, "look_up_s": 30, "answer": 40}  # reply tokens


def parallel(max_pages: int, first_page: int = 0, **settings: Any) -> ReadAgentP:
    return ReadAgentP(max_pages=max_pages, first_page=first_page, **settings)


def sequential(max_pages: int, **settings: Any) -> ReadAgentS:
    values = {"first_page": 0, "answer_each_look_up": False, "answer_words": 9,
              "answer_page_tags": True}  # fmt: skip
    return ReadAgentS(max_pages=max_pages, **{**values, **settings})


@pytest.mark.parametrize(
    ("room", "used", "reasons"),
    [
        # Page n has 10 words more than its gist, page 4 only one.
        (9, (), "3 no_room, 1 no_room, 9 out_of_range, 4 no_room, 3 no_room"),
        (10, (3,), "1 no_room, 9 out_of_range, 4 no_room, 3 duplicate"),
        (20, (3, 1), "9 out_of_range, 4 no_room, 3 duplicate"),
        (21, (3, 1, 4), "9 out_of_range, 3 duplicate"),
    ],
)
@pytest.mark.parametrize("by_budget", [True, False])
def test_pages_are_taken_until_the_first_without_room(
    by_budget: bool, room: int, used: tuple[int, ...], reasons: str
) -> None:
    """In the budget, beside six gists of a word, or in the context."""
    pages = ["word " * (2 if n == 4 else 11) for n in range(6)]
    rows = book(pages, ["gist"] * 6, [question()])
    tokens = num_tokens(ParallelLookUp(passages(rows, ()), QUESTION, (), 5))
    stage = parallel(5, budget=6 + room if by_budget else None)
    context = {} if by_budget else {"context_tokens": tokens + 40 + room}
    engine = in_turn("I want to look up Page [3, 1, 9, 4, 3]", **context)
    (row,), _ = run(stage, rows, engine, reply_tokens=BUDGETS)
    assert row.used == used
    assert ", ".join(f"{drop.page_index} {drop.reason}" for drop in row.dropped) == reasons


def test_the_longer_of_look_up_and_answer_reply_stays_free() -> None:
    tokens = num_tokens(ParallelLookUp(passages(BOOK, (2,)), QUESTION, (), 5))
    for answer_tokens, free, used in ((40, 40, (2,)), (40, 39, ()), (20, 30, (2,)), (20, 29, ())):
        budgets = {"look_up_p": 30, "answer": answer_tokens}
        (row,), _ = run(parallel(5), BOOK, always("[2]", tokens + free), reply_tokens=budgets)
        assert row.used == used


def test_gists_and_pages_read_in_their_place_are_shown_by_the_familys_numbers() -> None:
    engine = in_turn("[]")
    run(parallel(4, first_page=1), BOOK, engine)
    (prompt,) = engine.prompts()
    memory = "".join(f"<Page {n + 1}>\ngist {n}\n\n" for n in range(7))
    assert f"{memory}Question: {QUESTION}" in prompt
    assert "4 at most" in prompt and "Page text" not in prompt
    engine = in_turn("Page 5", "Page 8", "Page 1")
    made, _ = run(sequential(2, first_page=1), BOOK, engine)
    turn = looked_up(0, turn=1, requested=(7, 0), dropped=(Dropped(7, "out_of_range"),))
    assert made == [looked_up(4), turn]
    first, second, again = engine.prompts()
    assert "Page text" not in first and "in full already" not in first
    shown = f"<Page 4>\ngist 3\n\n<Page 5>\n{PAGES[4].strip()}\n\n<Page 6>\ngist 5\n\n"
    assert shown in second and "choose another: 5\n" in second
    assert "no such page: 8\n" in again
    engine = in_turn("Page 4", "Page 0", "STOP")
    run(sequential(3), BOOK, engine)
    assert f"<Page 0>\n{PAGES[0].strip()}\n\n<Page 1>\ngist 1\n\n" in engine.prompts()[2]
    assert "choose another: 4, 0\n" in engine.prompts()[2]


def second(*requested: int, used: tuple[int, ...] = (), problem: Any = None) -> Lookup:
    """The second turn, after page 4 was read: what is not used is dropped."""
    drops = [Dropped(page, "duplicate" if page == 4 else "out_of_range")
             for page in requested if page not in used]  # fmt: skip
    return looked_up(*used, turn=1, requested=requested, dropped=tuple(drops), problem=problem)


@pytest.mark.parametrize(
    ("replies", "last"),
    [
        (("Page 0 for the bell", "STOP"), [second(0, used=(0,)), looked_up(turn=2)]),
        # A refused page is asked about once more.
        (("Page 7", "Page 2", "STOP"), [second(7, 2, used=(2,)), looked_up(turn=2)]),
        (("Page 4", "Page 2", "STOP"), [second(4, 2, used=(2,)), looked_up(turn=2)]),
        # A second refusal ends it, and so do two replies of which one at most is readable.
        (("Page 4", "Page 7"), [second(4, 7)]), (("Page 4", "Page 4"), [second(4, 4)]),
        (("Hm.", "Page 9"), [second(9)]), (("Page 9", "Hm."), [second(9)]),
        (("Hm.", ""), [second(problem="unparseable")]),
    ],
)  # fmt: skip
def test_when_it_asks_again_and_when_it_stops(replies: tuple[str, ...], last: list[Lookup]) -> None:
    made, calls = run(sequential(5), BOOK, in_turn("Page 4", *replies))
    assert made == [looked_up(4), *last]
    assert len(calls) == 1 + len(replies)


@pytest.mark.parametrize("prompts", ["generic", "narrativeqa_movie"])
def test_what_is_asked_once_more_says_what_was_wrong(tmp_path: Path, prompts: str) -> None:
    """Without sampling the same prompt would only get the same reply."""
    refused = looked_up(3, requested=(9, 3), dropped=(Dropped(9, "out_of_range"),))
    for first, wrong, turn in (("Near the end.", "reply named no page", looked_up(3)),
                               ("Page 9", "no such page: 9\n", refused)):  # fmt: skip
        engine = scripted(tmp_path, {"match": wrong, "reply": "Page 3"}, {"reply": first})
        made, calls = run(sequential(1), BOOK, engine, prompts=prompts)
        assert (made, [call.reply for call in calls]) == ([turn], [first, "Page 3"])


def test_a_family_that_says_nothing_of_it_is_not_asked_the_same_again(tmp_path: Path) -> None:
    folder = written_family(tmp_path, "{}")
    (folder / "look_up_s.jinja").write_text("{{ passages }} {{ question }} Which page?")
    found = load_family(folder, [CONF / "prompts"])
    made, _ = run(sequential(1), BOOK, in_turn("Hm."), prompts=found)
    assert made == [looked_up(problem="unparseable")]
    made, _ = run(sequential(1), BOOK, in_turn("Hm.", "Page 3"), prompts=found, temperature=0.7)
    assert made == [looked_up(3)]


def lost(problem: Any, turn: int = 0) -> Lookup:
    return looked_up(turn=turn, used=None, problem=problem)


CUT, FAILED = {"finish_reason": "length"}, {"finish_reason": "abort"}


@pytest.mark.parametrize(
    ("stage", "rule", "expected"),
    [
        # The example of the design.
        (parallel(2), {"reply": "I want to look up Page [5, 2, 9, 5, 1] to find the bell"},
         looked_up(5, 2, requested=(5, 2, 9, 5, 1), dropped=(
             Dropped(9, "out_of_range"), Dropped(5, "duplicate"), Dropped(1, "over_maximum")))),
        # Numbers are the family's, and rows hold indexes.
        (parallel(4, first_page=1), {"reply": "I want to look up Page [1, 7, 8, 0]"},
         looked_up(0, 6, requested=(0, 6, 7, -1),
                   dropped=(Dropped(7, "out_of_range"), Dropped(-1, "out_of_range")))),
        # Without a page the gists remain.
        (parallel(2), {"reply": "The gists are enough."}, looked_up()),
        (parallel(2), {"reply": "[7 to 12]"}, looked_up(problem="unparseable")),
        (parallel(2), {**CUT, "reply": "Let me think about"}, looked_up(problem="truncated")),
        (parallel(2), {**CUT, "reply": "look up Page [3, 1] since"}, looked_up(3, 1)),
        (parallel(2), {**FAILED, "reply": "look up Page [3]"}, lost("engine_failed")),
        (parallel(2), {"hang": True}, lost("timeout")),
        (sequential(1), {**CUT, "reply": "Page 2, since"}, looked_up(2)),
        (sequential(1), {**CUT, "reply": "Let me see"}, looked_up(problem="truncated")),
        (sequential(1), {"hang": True}, lost("timeout")),
    ],
)  # fmt: skip
def test_what_one_reply_looks_up(
    tmp_path: Path, stage: ReadAgentP | ReadAgentS, rule: dict[str, Any], expected: Lookup
) -> None:
    made, _ = run(stage, BOOK, scripted(tmp_path, rule), deadline_seconds=deadline(rule))
    assert made == [expected]


def test_a_reply_missing_later_fails_the_question(tmp_path: Path) -> None:
    rules = {"match": "already", **FAILED}, {"reply": "Page 2"}
    made, _ = run(sequential(3), BOOK, scripted(tmp_path, *rules))
    assert made == [looked_up(2), lost("engine_failed", turn=1)]


def tokens(read: tuple[int, ...]) -> int:
    return num_tokens(SequentialLookUp(passages(BOOK, read), QUESTION, (), read, ()))


def test_a_gist_memory_that_does_not_fit_is_not_asked_about() -> None:
    alone = num_tokens(ParallelLookUp(passages(BOOK, ()), QUESTION, (), 2))
    for stage, needed in ((parallel(2), alone), (sequential(3), tokens(()))):
        made, _ = run(stage, BOOK, always("STOP []", needed + 30), reply_tokens=BUDGETS)
        assert made == [looked_up()]
        made, calls = run(stage, BOOK, always("STOP []", needed + 29), reply_tokens=BUDGETS)
        assert (made, calls) == ([lost("context_overflow")], ())
    for over_budget in (sequential(2, budget=13), parallel(5, budget=13)):
        assert run(over_budget, BOOK, never()) == ([looked_up()], ()), "the answer says why"


@pytest.mark.parametrize("by_budget", [True, False])
def test_it_stops_at_the_page_that_has_no_room(by_budget: bool) -> None:
    """In the context, 40 words of it for the answer, or in the budget: gists have two words, pages
    seven, 5 more each."""
    full = looked_up(turn=1, requested=(0,), dropped=(Dropped(0, "no_room"),), used=())
    for less, last in ((0, looked_up(0, turn=1)), (1, full)):
        context = {} if by_budget else {"context_tokens": tokens((4, 0)) + 40 - less}
        stage = sequential(2, budget=14 + 10 - less if by_budget else None)
        engine = in_turn("Page 4", "Page 0", **context)
        assert run(stage, BOOK, engine, reply_tokens=BUDGETS)[0] == [looked_up(4), last]


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


@pytest.mark.parametrize("tags", [True, False])
def test_an_answer_so_far_is_shown_to_each_look_up(tags: bool) -> None:
    """Answer, look-up, answer, look-up: the second answer has page 4 in front of it."""
    engine = in_turn("Nobody did.", "Page 4", "The sexton did.", "STOP")
    stage = sequential(3, answer_each_look_up=True, answer_page_tags=tags)
    made, calls = run(stage, BOOK, engine)
    prompts = engine.prompts()
    assert ["<Page 4>" in prompt for prompt in prompts] == [tags, True, tags, True]
    assert made == [looked_up(4), looked_up(turn=1)]
    assert [call.prompt for call in calls] == ["answer", "look_up_s"] * 2
    assert "would be: Nobody did." in prompts[1] and "sexton" not in prompts[1]
    assert PAGES[4].strip() in prompts[2] and PAGES[4].strip() not in prompts[0]
    assert "would be: The sexton did." in prompts[3]
