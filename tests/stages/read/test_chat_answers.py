"""Chats as a reader is shown them, notes on each, and the answers made of either."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stages.judge.rate import RateByType
from stages.prompts.longmemeval import AnswerFromChats, AnswerWithNotes, NoteOnChat
from stages.read.answer_from_chats import (
    AnswerFromChat,
    AnswerFromExpandedChat,
    AnswerFromNotes,
    TakeNotes,
)
from stages.tables.answers import Answer
from stages.tables.lookups import Note
from stages.tables.pages import Expansion
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    in_turn,
    looked_up,
    never,
    question,
    run,
    scripted,
)

PAGES = (
    '\f[2023/05/20 (Sat) 10:00]\nuser: I have a "cat".\n\nassistant: Nice.\n\n',
    "user: She is three.\n\n",
    "\f[2023/05/30 (Tue) 21:48]\nuser: Bye.\n\n",
)
ASKED = question(asked_at="2023/06/01 (Thu) 09:00")
SETTINGS: dict[str, Any] = {
    "first_page": 0, "answer_words": 9, "answer_page_tags": False, "judged": "answer",
}  # fmt: skip
TAKE_NOTES = TakeNotes(history="text")
CAT = '[{"role": "user", "content": "She is three."}]'


def rows(*used: int) -> Any:
    return book(PAGES, questions=[ASKED], lookups=[looked_up(*used)])


def answered(
    engine: Any, reading: Any = "direct", history: Any = "text", judged: Any = "answer"
) -> Any:
    settings = {**SETTINGS, "judged": judged}
    stage = AnswerFromChat(reading=reading, history=history, **settings)
    (answer,), _ = run(stage, rows(2, 0), engine)
    return answer


def shown_by(engine: Listener) -> list[str]:
    (request,) = engine.requests
    assert isinstance(request.fields, AnswerFromChats)
    return [passage.text for passage in request.fields.passages]


def test_items_by_date_as_text_or_json() -> None:
    for history, first in (
        ("text", 'user: I have a "cat".\n\nassistant: Nice.'),
        ("json", '[{"role": "user", "content": "I have a \\"cat\\"."}, '
                 '{"role": "assistant", "content": "Nice."}]'),
    ):  # fmt: skip
        engine = always("A cat.")
        answer = answered(engine, history=history)
        shown = shown_by(engine)
        assert shown[0] == f"### Session 1\nDate: 2023/05/20 (Sat) 10:00\n{first}"
        assert shown[1].startswith("### Session 2\nDate: 2023/05/30 (Tue) 21:48\n")
        assert len(shown) == 2 and "2023/06/01 (Thu) 09:00" in engine.prompts()[0]
        # 7 and 2 words; `book` counts the 3 of a header, too
        assert (answer.page_indexes, answer.num_context_words) == ((0, 2), 15)


NOTED, FORMLESS = "Notes:\n- a cat is named\nAnswer: A cat.", "It is a cat, I think."


@pytest.mark.parametrize(
    ("reply", "judged", "answer", "words", "problem"),
    [
        (NOTED, "answer", "A cat.", 2, None), (FORMLESS, "answer", FORMLESS, 6, "unparseable"),
        (NOTED, "whole_reply", "A cat.", 2, None), (FORMLESS, "whole_reply", FORMLESS, 6, None),
    ],
)  # fmt: skip
def test_the_answer_follows_the_notes_and_raters_may_see_the_whole_reply(
    reply: str, judged: str, answer: str, words: int, problem: str | None
) -> None:
    """Then a reply without the form is an answer, too."""
    engine, rater = always(reply), always("yes")
    made = answered(engine, reading="con", judged=judged)
    assert isinstance(engine.requests[0].fields, AnswerWithNotes)
    assert (made.answer, made.num_answer_words, made.problem) == (answer, words, problem)
    graded = book(PAGES, questions=[replace(ASKED, references=("a cat",))])
    run(RateByType(), adding(graded, {Answer: [made]}), rater)
    seen = [] if problem else [judged == "whole_reply"]
    assert [reply in prompt for prompt in rater.prompts()] == seen


def test_a_note_for_each_page_that_was_found() -> None:
    engine = in_turn("She is three.", "empty")
    made, calls = run(TAKE_NOTES, rows(2, 1), engine)
    assert [(note.page_index, note.note) for note in made] == [(1, "She is three."), (2, "")]
    assert [(call.page_index, call.question_id) for call in calls] == [(1, "q"), (2, "q")]
    dates = "2023/05/20 (Sat) 10:00", "2023/06/01 (Thu) 09:00"
    first = NoteOnChat("user: She is three.", dates[0], ASKED.question, dates[1])
    assert engine.requests[0].fields == first
    (none,), _ = run(TAKE_NOTES, rows(), never())
    assert (none.page_index, none.note, none.why_unusable()) == (None, None, None)


@pytest.mark.parametrize(
    ("keep_empty", "history", "first", "second", "words"),
    [
        (True, "text", "She is three.", ["empty"], 4), (False, "text", "She is three.", [], 3),
        (True, "json", '{"note": "She is three."}', ['{"note": "empty"}'], 4),
    ],
)  # fmt: skip
def test_answers_are_made_from_what_was_noted(
    keep_empty: bool, history: Any, first: str, second: list[str], words: int
) -> None:
    made, _ = run(TAKE_NOTES, rows(2, 1), in_turn("She is three.", "empty"))
    engine = always("Three.")
    stage = AnswerFromNotes(reading="direct", history=history, keep_empty=keep_empty, **SETTINGS)
    (answer,), _ = run(stage, adding(rows(2, 1), {Note: made}), engine)
    assert shown_by(engine) == [
        f"### Session 1\nDate: 2023/05/20 (Sat) 10:00\n{first}",
        *(f"### Session 2\nDate: 2023/05/30 (Tue) 21:48\n{text}" for text in second),
    ]
    assert (answer.page_indexes, answer.context_spans) == ((1, 2), ())
    assert answer.num_context_words == words


@pytest.mark.parametrize(
    ("shown", "history", "text", "raw", "words"),
    [
        ("value", "json", CAT, (0, 1), 7 + 2),  # with the words of a header, which `book` counts
        ("items", "json", '["A cat.", "It is 3."]', (1,), 5 + 2),
        ("items", "text", "A cat.\nIt is 3.", (1,), 5 + 2),
        ("both", "json", f'{{"noted": ["A cat.", "It is 3."], "chat": {CAT}}}', (0, 1), 7 + 2 + 5),
        ("both", "text", "Noted: A cat.\nIt is 3.\n\nuser: She is three.", (0, 1), 7 + 2 + 5),
    ],
)
def test_what_was_extracted_is_shown_instead_or_before(
    shown: Any, history: Any, text: str, raw: tuple[int, ...], words: int
) -> None:
    """Facts of page 0 alone; page 1 is shown as it is in any case."""
    pages = ("\f[2023/05/20 (Sat) 10:00]\nuser: She is three.\n\n", "user: Bye.\n\n")
    unit = book(pages, questions=[ASKED], lookups=[looked_up(1, 0)])
    facts = [Expansion(document_id="d", page_index=0, item_index=n, kind="fact", text=fact)
             for n, fact in enumerate(("A cat.", "It is 3."))]  # fmt: skip
    unit = adding(unit, {Expansion: facts})
    engine = always("Three.")
    stage = AnswerFromExpandedChat(reading="direct", history=history, shown=shown, **SETTINGS)
    (answer,), _ = run(stage, unit, engine)
    first, second = (item.split("\n", 2)[2] for item in shown_by(engine))
    assert first == text and "Bye." in second
    assert (answer.page_indexes, answer.num_lookups) == (raw, len(raw))
    assert (len(answer.context_spans), answer.num_context_words) == (len(raw), words)


def test_a_note_without_a_reply_loses_the_answer(tmp_path: Path) -> None:
    engine = scripted(tmp_path, {"match": "She is three", "hang": True}, {"reply": "Bye."})
    made, _ = run(TAKE_NOTES, rows(2, 1), engine, deadline_seconds=1.0)
    stage = AnswerFromNotes(reading="direct", history="text", keep_empty=True, **SETTINGS)
    (answer,), _ = run(stage, adding(rows(2, 1), {Note: made}), never())
    assert (answer.problem, answer.detail) == ("upstream", "notes: timeout")
