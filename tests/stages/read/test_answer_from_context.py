"""Answers: what of the document is sent, how many words it has, and what becomes of a reply."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.engine import Reply, Request
from pipeline.core.prompts import Message
from pipeline.core.rows import Question, Span, UnitRows
from stages.prompts.answer import AnswerQuestion, Passage
from stages.read.answer_from_context import AnswerFromContext, AnswerFromMemory, AnswerFromPages
from stages.read.answer_kinds import (
    AnswerClosedBook,
    AnswerConstant,
    AnswerFromText,
    AnswerFromTruncatedText,
)
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    content,
    deadline,
    document,
    in_turn,
    looked_up,
    never,
    num_tokens,
    passages,
    question,
    run,
    scripted,
)

# 5 + 3 + 6 + 4 = 18 words in pages, gists of 2, 1, 2 and 1.
PAGES = (
    "The bell rings at noon.\n\n",
    "Nobody admits it.\n",
    "  The sexton says\nit was wind. ",
    "The bell is silent.",
)
GISTS = ("bell rings", "denial", "wind blamed", "silence")
TEXT = "".join(PAGES)
OPTIONS = ("the sexton", "nobody", "the wind")
WHOLE_TEXT = "  The bell rings\nat noon.\n\nNobody admits it. "  # 8 words
EMPTY = num_tokens(AnswerQuestion((Passage("text", None, ""),), question().question, (), 30))
REPLY = 50
COMMON: dict[str, Any] = {"first_page": 0, "answer_words": 30, "answer_page_tags": True}
FROM_MEMORY = AnswerFromMemory(**COMMON)
FROM_PAGES = AnswerFromPages(**COMMON)


def rows(*lookups: Lookup, questions: Sequence[Question] = (question(),)) -> UnitRows:
    return book(PAGES, GISTS, questions, lookups)


def one(stage: AnswerFromContext, given: UnitRows, engine: Listener, **more: Any) -> Answer:
    (answer,), _ = run(stage, given, engine, **more)
    assert isinstance(answer, Answer)
    return answer


def whole(text: str) -> UnitRows:
    """A question about a text of which no page is looked up."""
    return adding(UnitRows(document(text), (question(),)), {Lookup: [looked_up()]})


def shown_of(answer: Answer, text: str) -> str:
    (span,) = answer.context_spans
    return text[span.start_char : span.end_char]


def before_the_question(engine: Listener) -> str:
    (prompt,) = engine.prompts()
    return prompt.partition("Question: ")[0].partition("left out.\n\n")[2]


def test_memory_shows_pages_in_their_gists_place_in_document_order() -> None:
    engine = in_turn("The wind did it.")
    answer = one(FROM_MEMORY, rows(looked_up(2), looked_up(0, turn=1), looked_up(turn=2)), engine)
    assert before_the_question(engine) == (
        "<Page 0>\nThe bell rings at noon.\n\n<Page 1>\ndenial\n\n"
        "<Page 2>\nThe sexton says\nit was wind.\n\n<Page 3>\nsilence\n\n"
    )
    assert answer == Answer(
        document_id="d", question_id="q", reader="listener", answer="The wind did it.",
        page_indexes=(0, 2), context_spans=(Span(0, 25), Span(43, 74)), num_lookups=2,
        num_context_words=5 + 1 + 6 + 1,
        num_context_tokens=13,  # the listener's are words; tags are not counted
        num_document_words=18, compression_rate=100 * (1 - 13 / 18), num_answer_words=4,
    )  # fmt: skip


def test_pages_alone_in_document_order() -> None:
    engine = in_turn("Noon.")
    stage = AnswerFromPages(**{**COMMON, "first_page": 1})
    answer = one(stage, rows(looked_up(3, 1)), engine)
    assert before_the_question(engine) == (
        "<Page 2>\nNobody admits it.\n\n<Page 4>\nThe bell is silent.\n\n"
    )
    assert answer.page_indexes == (1, 3)
    assert (answer.num_context_words, answer.compression_rate) == (7, 100 * (1 - 7 / 18))
    for wrong in (9, -1):  # as a plugin's ranking may have it
        with pytest.raises(ValueError, match=f"there is no page {wrong}"):
            one(stage, rows(looked_up(1, wrong)), engine)


SPACED = "ann: one  two\nbob: three\n\nann: four five"


@pytest.mark.parametrize(
    ("text", "by", "keep", "num_words", "shown"),
    [
        (TEXT, "words", None, None, TEXT), (TEXT, "words", "first", 18, TEXT),
        (TEXT, "words", "first", 7, "The bell rings at noon.\n\nNobody admits"),
        (TEXT, "words", "last", 6, "was wind. The bell is silent."),
        (TEXT, "words", "last", 1, "silent."), (TEXT, "words", "last", 100, TEXT),
        # As ReadAgent's truncated baselines: a line break separates nothing, two spaces do twice.
        (SPACED, "spaces", "first", 3, "ann: one "),
        (SPACED, "spaces", "last", 5, " two\nbob: three\n\nann: four five"),
        (SPACED, "spaces", "first", 7, SPACED), (SPACED, "spaces", "last", 100, SPACED),
    ],
)  # fmt: skip
def test_text_or_exactly_its_first_or_last_words(
    text: str, by: str, keep: str | None, num_words: int | None, shown: str
) -> None:
    engine = in_turn("Noon.")
    settings = {**COMMON, "keep": keep, "num_words": num_words, "truncate_by": by}
    answer = one(AnswerFromText.model_validate(settings), whole(text), engine)
    assert before_the_question(engine) == f"{shown.strip()}\n\n"
    count = len(shown.split())
    assert answer.num_context_words == count
    assert answer.compression_rate == 100 * (1 - count / len(text.split()))
    assert shown_of(answer, text) == shown
    assert (answer.page_indexes, answer.num_lookups) == ((), 0)


@pytest.mark.parametrize(
    ("reply", "index", "problem"),
    [
        ("Answer: (C)", 2, None), ("**Answer: B**\nas he says", 1, None),
        ("Answer: (D)", None, "out_of_range"), ("It was the wind.", None, "unparseable"),
        ("", None, "unparseable"),
    ],
)  # fmt: skip
def test_options(reply: str, index: int | None, problem: str | None) -> None:
    engine = in_turn(f" {reply}\n")
    answer = one(FROM_MEMORY, rows(looked_up(1), questions=[question(options=OPTIONS)]), engine)
    assert "(A) the sexton\n(B) nobody\n(C) the wind\n" in engine.prompts()[0]
    assert (answer.answer, answer.answer_index, answer.problem) == (reply, index, problem)
    assert (answer.num_answer_words, answer.page_indexes) == (len(reply.split()), (1,))


def test_closed_book_and_a_constant_answer_show_nothing_of_the_document() -> None:
    """Nobody is asked for the constant; with options it is the first."""
    engine, asked = in_turn("Noon."), [question("a"), question("b", options=OPTIONS)]
    closed = one(AnswerClosedBook(**COMMON), rows(looked_up(2)), engine)
    assert engine.prompts()[0].startswith("Question: Who rang the bell?")
    given = rows(looked_up(question_id="a"), looked_up(question_id="b"), questions=asked)
    made, _ = run(AnswerConstant(**COMMON, constant_answer="He did it."), given, never())
    assert [(a.answer, a.answer_index, a.num_answer_words, a.reader) for a in (closed, *made)] == [
        ("Noon.", None, 1, "listener"),
        ("He did it.", None, 3, "constant"), ("Answer: (A)", 0, 2, "constant"),
    ]  # fmt: skip
    for row in (closed, *made):
        assert (row.num_context_words, row.num_context_tokens) == (0, 0)
        assert (row.compression_rate, row.context_spans, row.problem) == (100.0, (), None)


def test_cut_and_missing_replies(tmp_path: Path) -> None:
    rules = ({"match": "cut?", "reply": "The wind", "finish_reason": "length"},
             {"match": "lost?", "reply": "The wind", "finish_reason": "abort"},
             {"match": "late?", "hang": True})  # fmt: skip
    asked = [question(name, f"Is it {name}?") for name in ("cut", "lost", "late")]
    given = rows(*(looked_up(1, question_id=each.question_id) for each in asked), questions=asked)
    made, _ = run(FROM_MEMORY, given, scripted(tmp_path, *rules), deadline_seconds=deadline(*rules))
    assert [(row.answer, row.problem, row.num_context_words, row.page_indexes) for row in made] == [
        ("The wind", "truncated", 2 + 3 + 2 + 1, (1,)),
        (None, "engine_failed", None, ()), (None, "timeout", None, ()),
    ]  # fmt: skip


def test_a_prompt_too_long_for_the_context_is_a_row_of_nulls() -> None:
    """Of gists alone, as where a look-up's reply named no page."""
    prompt = AnswerQuestion(passages(rows()), "Who rang the bell?", (), answer_words=30)
    tokens = num_tokens(prompt) + 50
    given, budget = rows(looked_up(problem="unparseable")), {"answer": 50}
    fits = one(FROM_MEMORY, given, always("Noon.", tokens), reply_tokens=budget)
    assert (fits.problem, fits.page_indexes, fits.num_context_words) == (None, (), 6)
    made, calls = run(FROM_MEMORY, given, always("Noon.", tokens - 1), reply_tokens=budget)
    lost = Answer.about(fits, answer=None, reader="listener", num_document_words=18)
    assert (made, calls) == ([replace(lost, problem="context_overflow")], ())


@pytest.mark.parametrize("fitting", [1, 617, 1000])
def test_of_a_thousand_pages_as_many_as_fit_with_few_counts(fitting: int) -> None:
    """The best first; the prompt is counted about ten times, not once for each page left out, and
    each page that is shown once."""
    counted: list[int] = []

    class Counting(Listener):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            counted.append(await super().count_tokens(messages))
            return counted[-1]

    pages = [f"Page {n} has {'many ' * (n % 7)}words. " for n in range(1000)]
    best = random.Random(7).sample(range(1000), 1000)
    kept = [pages[n].strip() for n in sorted(best[:fitting])]
    given = book(pages, questions=[question()], lookups=[looked_up(*best)])
    shown = tuple(Passage("page", None, text) for text in kept)
    tokens = num_tokens(AnswerQuestion(shown, "Who rang the bell?", (), answer_words=30))
    engine = Counting(lambda request: "Noon.", context_tokens=tokens + 50)
    stage = AnswerFromPages(**{**COMMON, "answer_page_tags": False})
    answer = one(stage, given, engine, reply_tokens={"answer": 50})
    assert answer.page_indexes == tuple(sorted(best[:fitting]))
    note = f"no room for {1000 - fitting} of 1000 pages"
    assert answer.detail == (None if fitting == 1000 else note)
    assert answer.num_context_tokens == sum(len(text.split()) for text in kept)
    assert len(engine.requests) == 1 and len(counted) <= 20 + fitting


def test_a_server_that_refuses_what_was_counted_to_fit_gets_less() -> None:
    """Counts of servers that do not count exactly may be too low."""

    class Refusing(Listener):
        async def generate(self, request: Request) -> Reply:
            if len(content(request).split()) <= room:
                return await super().generate(request)
            return Reply(text="", finish_reason="abort", problem="context_overflow")

    engine = always("Noon.")
    run(FROM_PAGES, rows(looked_up(2)), engine)
    room = len(engine.prompts()[0].split())
    (answer,), calls = run(FROM_PAGES, rows(looked_up(2, 0, 3)), Refusing(lambda _: "Noon."))
    assert (answer.page_indexes, answer.detail) == ((2,), "no room for 2 of 3 pages")
    assert [call.problem for call in calls].count("context_overflow") == 2


def test_a_failed_look_up_is_upstream_and_a_skipped_one_is_skipped() -> None:
    empty = Answer.about(question(), reader="listener", num_document_words=18)
    lookups = looked_up(2), looked_up(turn=1, used=None, problem="timeout")
    lost = replace(empty, problem="upstream", detail="look_up: timeout")
    assert one(FROM_MEMORY, rows(*lookups), never()) == lost
    assert one(FROM_PAGES, rows(looked_up(skipped=True)), never()) == replace(empty, skipped=True)


def answered_by(
    keep: Any, engine: Listener, text: str = WHOLE_TEXT, budget: int | None = None
) -> Answer:
    stage = AnswerFromTruncatedText(**COMMON, keep=keep, budget=budget)
    return one(stage, whole(text), engine, reply_tokens={"answer": REPLY})


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (9, WHOLE_TEXT, WHOLE_TEXT), (8, WHOLE_TEXT, WHOLE_TEXT),
        (7, WHOLE_TEXT[:40], WHOLE_TEXT[6:]), (1, "  The", "it. "),
    ],
)  # fmt: skip
def test_words_up_to_the_last_token(words: int, first: str, last: str) -> None:
    for keep, expected in (("first", first), ("last", last)):
        engine = always("Noon.", EMPTY + REPLY + words)
        answer = answered_by(keep, engine)
        assert answer == answered_by(keep, always("Noon."), budget=words)
        assert shown_of(answer, WHOLE_TEXT) == expected
        assert answer.num_context_words == len(expected.split()) == min(words, 8)
        assert answer.compression_rate == 100 * (1 - min(words, 8) / 8)
        assert (answer.page_indexes, answer.problem, answer.detail) == ((), None, None)
        (prompt,) = engine.prompts()
        assert expected.strip() in prompt
        assert len(prompt.split()) == EMPTY + min(words, 8)


def test_a_question_that_leaves_no_room_for_a_word_of_the_text_is_not_sent() -> None:
    for context_tokens in (EMPTY + REPLY, EMPTY + REPLY - 1, REPLY, 1):
        answer = answered_by("first", in_turn(context_tokens=context_tokens))
        assert (answer.problem, answer.answer) == ("context_overflow", None)
        assert answer.context_spans == ()


def test_the_first_option_shown_is_the_one_chosen() -> None:
    """Orders are drawn by the seed and the question, whoever else is asked."""
    asked = [question(f"q{n}", options=OPTIONS) for n in range(20)]

    def chosen(questions: Sequence[Question], seed: int | None) -> list[tuple[Any, Any]]:
        stage = AnswerFromMemory(**COMMON, options_seed=seed)
        lookups = [looked_up(question_id=each.question_id) for each in questions]
        made, _ = run(stage, rows(*lookups, questions=questions), always("Answer: (A)"))
        return [(answer.answer_index, answer.options_order) for answer in made]

    shuffled = chosen(asked, 0)
    assert all(index == order[0] for index, order in shuffled)
    assert {order for _, order in shuffled} == {*permutations(range(3))}
    assert chosen(asked[5:], 0) == shuffled[5:]
    assert chosen(asked, 1) != shuffled
    assert chosen(asked, None) == [(0, ())] * 20


def test_shuffled_options_rename_answers_and_what_follows_alone() -> None:
    shuffled, seed = "shuffle_options=true", "engine.seed=1"
    ids = [{step.id for step in read_run([*words, "methods=gist_only,closed_book"]).steps}
           for words in ([], [seed], [shuffled], [shuffled, seed])]  # fmt: skip
    assert ids[0] == ids[1]
    for of_seed in ids[2:]:
        later = {step for step in of_seed if step.startswith(("answer", "score", "rate"))}
        assert of_seed - ids[0] == later
    assert ids[2] != ids[3]
