"""Answers: what of the document is sent, how many words it has, and what becomes of a reply."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from tests.support.command import sql, succeed
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
COMMON: dict[str, Any] = {"first_page": 0, "answer_words": 30, "answer_page_tags": True}
FROM_MEMORY = AnswerFromMemory(**COMMON)
FROM_PAGES = AnswerFromPages(**COMMON)


def rows(*lookups: Lookup, questions: Sequence[Question] = (question(),)) -> UnitRows:
    return book(PAGES, GISTS, questions, lookups)


def one(stage: AnswerFromContext, given: UnitRows, engine: Listener, **more: Any) -> Answer:
    (answer,), _ = run(stage, given, engine, **more)
    assert isinstance(answer, Answer)
    return answer


@dataclass
class Counting(Listener):
    """Notes how many tokens it counted each time."""

    counted: list[int] = field(default_factory=list)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        self.counted.append(await super().count_tokens(messages))
        return self.counted[-1]


def shown_of(answer: Answer, text: str) -> str:
    (span,) = answer.context_spans
    return text[span.start_char : span.end_char]


def before_the_question(engine: Listener) -> str:
    (prompt,) = engine.prompts()
    start, _, _ = prompt.partition("Question: ")
    return start.partition("left out.\n\n")[2]


def test_memory_shows_pages_in_their_gists_place_in_document_order() -> None:
    engine = in_turn("The wind did it.")
    answer = one(FROM_MEMORY, rows(looked_up(2, 0)), engine)
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


def test_look_ups_of_several_turns_or_of_none() -> None:
    several = looked_up(3), looked_up(0, turn=1), looked_up(turn=2)
    from_gists = (looked_up(problem="unparseable"),)
    for lookups, read, words in ((several, (0, 3), 5 + 1 + 2 + 4), (from_gists, (), 6)):
        answer = one(FROM_MEMORY, rows(*lookups), in_turn("Noon."))
        assert (answer.answer, answer.problem, answer.page_indexes) == ("Noon.", None, read)
        assert (answer.num_lookups, answer.num_context_words) == (len(read), words)


def test_pages_alone_in_document_order() -> None:
    engine = in_turn("Noon.")
    stage = AnswerFromPages(**{**COMMON, "first_page": 1})
    answer = one(stage, rows(looked_up(3, 1)), engine)
    assert before_the_question(engine) == (
        "<Page 2>\nNobody admits it.\n\n<Page 4>\nThe bell is silent.\n\n"
    )
    assert answer.page_indexes == (1, 3)
    assert (answer.num_context_words, answer.compression_rate) == (7, 100 * (1 - 7 / 18))


SPACED = "ann: one  two\nbob: three\n\nann: four five"


@pytest.mark.parametrize(
    ("text", "by", "keep", "num_words", "shown"),
    [
        (TEXT, "words", None, None, TEXT), (TEXT, "words", "first", 18, TEXT),
        (TEXT, "words", "last", 100, TEXT), (TEXT, "words", "first", 1, "The"),
        (TEXT, "words", "first", 7, "The bell rings at noon.\n\nNobody admits"),
        (TEXT, "words", "last", 6, "was wind. The bell is silent."),
        (TEXT, "words", "last", 1, "silent."),
        # As ReadAgent's truncated baselines: a line break separates nothing, two spaces do twice.
        (SPACED, "spaces", "first", 3, "ann: one "),
        (SPACED, "spaces", "last", 3, "three\n\nann: four five"),
        (SPACED, "spaces", "first", 5, "ann: one  two\nbob: three\n\nann:"),
        (SPACED, "spaces", "last", 5, " two\nbob: three\n\nann: four five"),
        (SPACED, "spaces", "first", 7, SPACED), (SPACED, "spaces", "last", 100, SPACED),
    ],
)  # fmt: skip
def test_text_or_exactly_its_first_or_last_words(
    text: str, by: str, keep: str | None, num_words: int | None, shown: str
) -> None:
    engine = in_turn("Noon.")
    unit = adding(UnitRows(document(text), (question(),)), {Lookup: [looked_up()]})
    settings = {**COMMON, "keep": keep, "num_words": num_words, "truncate_by": by}
    answer = one(AnswerFromText.model_validate(settings), unit, engine)
    assert before_the_question(engine) == f"{shown.strip()}\n\n"
    count = len(shown.split())
    assert answer.num_context_words == count
    assert answer.compression_rate == 100 * (1 - count / len(text.split()))
    assert shown_of(answer, text) == shown
    assert (answer.page_indexes, answer.num_lookups) == ((), 0)


def test_closed_book_shows_nothing_of_the_document() -> None:
    engine = in_turn("Noon.")
    answer = one(AnswerClosedBook(**COMMON), rows(looked_up()), engine)
    (prompt,) = engine.prompts()
    assert prompt.startswith("Question: Who rang the bell?")
    assert not any(gist in prompt for gist in GISTS)
    assert (answer.num_context_words, answer.compression_rate) == (0, 100.0)
    assert answer.context_spans == ()


OPTIONS = ("the sexton", "nobody", "the wind")


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
    given = rows(looked_up(1), questions=[question(options=OPTIONS)])
    answer = one(FROM_MEMORY, given, engine)
    assert "(A) the sexton\n(B) nobody\n(C) the wind\n" in engine.prompts()[0]
    assert (answer.answer, answer.answer_index, answer.problem) == (reply, index, problem)
    assert answer.num_answer_words == len(reply.split())
    assert answer.page_indexes == (1,)  # what was read is known whatever was said


@pytest.mark.parametrize(
    ("rule", "text", "problem"),
    [
        ({"reply": "The wind", "finish_reason": "length"}, "The wind", "truncated"),
        ({"reply": ""}, "", "unparseable"),
        ({"reply": "The wind", "finish_reason": "abort"}, None, "engine_failed"),
        ({"hang": True}, None, "timeout"),
    ],
)
def test_cut_and_missing_replies(
    tmp_path: Path, rule: dict[str, Any], text: str | None, problem: str
) -> None:
    engine = scripted(tmp_path, rule)
    (answer,), _ = run(FROM_MEMORY, rows(looked_up(1)), engine, deadline_seconds=deadline(rule))
    assert (answer.answer, answer.problem) == (text, problem)
    assert answer.num_context_words == (None if text is None else 2 + 3 + 2 + 1)
    assert answer.context_spans == (() if text is None else (Span(25, 43),))


def test_a_prompt_too_long_for_the_context_is_a_row_of_nulls() -> None:
    prompt = AnswerQuestion(passages(rows()), "Who rang the bell?", (), answer_words=30)
    tokens = num_tokens(prompt) + 50
    given, budget = rows(looked_up()), {"answer": 50}
    fits = one(FROM_MEMORY, given, always("Noon.", tokens), reply_tokens=budget)
    assert fits.problem is None
    made, calls = run(FROM_MEMORY, given, always("Noon.", tokens - 1), reply_tokens=budget)
    lost = Answer.about(fits, answer=None, reader="listener", num_document_words=18)
    assert (made, calls) == ([replace(lost, problem="context_overflow")], ())


@pytest.mark.parametrize("stage", [FROM_MEMORY, FROM_PAGES])
def test_pages_without_room_are_left_out_the_least_important_first(
    stage: AnswerFromMemory | AnswerFromPages,
) -> None:
    """Room to the word for what pages 2 and 0 take, raw."""
    engine = always("Noon.")
    run(stage, rows(looked_up(2, 0)), engine)
    (prompt,) = engine.prompts()
    for less, read in ((0, (0, 2)), (1, (2,))):
        engine = always("Noon.", len(prompt.split()) + 50 - less)
        answer = one(stage, rows(looked_up(2, 0, 3, 1)), engine, reply_tokens={"answer": 50})
        assert (answer.page_indexes, answer.num_lookups) == (read, len(read))
        assert answer.detail == f"no room for {4 - len(read)} of 4 pages"
        assert len(engine.requests) == 1


@pytest.mark.parametrize("fitting", [1, 617, 1000])
def test_of_a_thousand_pages_as_many_as_fit_with_few_counts(fitting: int) -> None:
    """The best first; the prompt is counted about ten times, not once for each page left out, and
    each page that is shown once."""
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
    assert len(engine.requests) == 1 and len(engine.counted) <= 20 + fitting


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
    lookups = looked_up(2), looked_up(turn=1, used=None, problem="timeout")
    answer = one(FROM_MEMORY, rows(*lookups), never())
    assert (answer.problem, answer.detail) == ("upstream", "look_up: timeout")
    assert (answer.answer, answer.num_context_words, answer.page_indexes) == (None, None, ())
    answer = one(FROM_PAGES, rows(looked_up(skipped=True)), never())
    assert (answer.skipped, answer.problem, answer.answer) == (True, None, None)


def test_one_constant_answer_without_a_call() -> None:
    questions = question("a"), question("b", options=OPTIONS)
    lookups = looked_up(question_id="a"), looked_up(question_id="b")
    stage = AnswerConstant(**COMMON, constant_answer="He did it.")
    made, calls = run(stage, rows(*lookups, questions=questions), never())
    assert [(a.answer, a.answer_index, a.num_answer_words, a.reader) for a in made] == [
        ("He did it.", None, 3, "constant"), ("Answer: (A)", 0, 2, "constant"),
    ]  # fmt: skip
    assert [(a.num_context_words, a.compression_rate) for a in made] == [(0, 100.0)] * 2
    assert calls == ()


WHOLE_TEXT = "  The bell rings\nat noon.\n\nNobody admits it. "  # 8 words
EMPTY = num_tokens(AnswerQuestion((Passage("text", None, ""),), question().question, (), 30))
REPLY = 50


def answered_by(keep: Any, engine: Listener, text: str = WHOLE_TEXT) -> Answer:
    unit = adding(UnitRows(document(text), (question(),)), {Lookup: [looked_up()]})
    stage = AnswerFromTruncatedText(**COMMON, keep=keep)
    return one(stage, unit, engine, reply_tokens={"answer": REPLY})


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (9, WHOLE_TEXT, WHOLE_TEXT), (8, WHOLE_TEXT, WHOLE_TEXT),
        (7, WHOLE_TEXT[:40], WHOLE_TEXT[6:]), (1, "  The", "it. "),
    ],
)  # fmt: skip
def test_words_up_to_the_last_token(words: int, first: str, last: str) -> None:
    """Room for the question, the reply and so many words of text."""
    for keep, expected in (("first", first), ("last", last)):
        engine = always("Noon.", EMPTY + REPLY + words)
        answer = answered_by(keep, engine)
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


def test_unspaced_text_is_cut_between_characters() -> None:
    """Tokens are characters here, as they nearly are of a model."""

    class Characters(Listener):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            return sum(len(message["content"]) for message in messages)

    text = "钟在正午敲响没有人承认"
    engine = Characters(lambda request: "Noon.")
    answered_by("first", engine, text)
    (prompt,) = engine.prompts()
    engine.context_tokens = len(prompt) + REPLY - 4
    assert shown_of(answered_by("first", engine, text), text) == text[:-4]
    assert shown_of(answered_by("last", engine, text), text) == text[4:]


def answers(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Answers to the demo's questions with options, by a reader that always chooses the first."""
    scripted(folder, {"prompt": "answer", "match": r"\(A\)", "reply": "Answer: (A)"},
             {"reply": "A text."})  # fmt: skip
    warehouse = folder / "-".join(["w", *words]).replace("=", "-")
    succeed("run", "engine=scripted", f"engine.script={folder / 'script.yaml'}", "rater=none",
            "methods=closed_book", *words, f"warehouse={warehouse}", "corpus=demo")  # fmt: skip
    query = """select question_id, answers.answer_index, options_order, len(options) as num_options
        from answers join questions using (document_id, question_id)
        where len(options) > 0 order by all"""
    return sql(warehouse, query)


def test_the_first_option_shown_is_the_one_chosen(tmp_path: Path) -> None:
    shuffled = answers(tmp_path, "shuffle_options=true")
    assert len(shuffled) == 15
    for row in shuffled:
        assert sorted(row["options_order"]) == [*range(row["num_options"])]
        assert row["answer_index"] == row["options_order"][0]
    assert len({tuple(row["options_order"]) for row in shuffled}) > 5
    assert answers(tmp_path, "shuffle_options=true", "questions_per_unit=1") == shuffled
    assert answers(tmp_path, "shuffle_options=true", "engine.seed=1") != shuffled
    plain = answers(tmp_path)
    assert {(row["answer_index"], tuple(row["options_order"])) for row in plain} == {(0, ())}


def test_shuffled_options_rename_answers_and_what_follows_alone() -> None:
    ids = [{step.id for step in read_run([*words, "methods=gist_only,closed_book"]).steps}
           for words in ([], ["engine.seed=1"], ["shuffle_options=true"])]  # fmt: skip
    assert ids[0] == ids[1]
    later = {step for step in ids[2] if step.startswith(("answer", "score", "rate"))}
    assert ids[2] - ids[0] == later
