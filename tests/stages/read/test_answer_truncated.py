"""As much of a text's beginning or end as fits the context, to the token."""

import random
from collections.abc import Sequence

import pytest

from pipeline.core.prompts import Message
from pipeline.core.rows import Question, UnitRows
from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.passages import Passage
from stages.read.answer_kinds import AnswerFromTruncatedText
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from tests.support.reading import (
    Listener,
    adding,
    always,
    document,
    looked_up,
    never,
    num_tokens,
    question,
    run,
)

TEXT = "  The bell rings\nat noon.\n\nNobody admits it. "  # 8 words
ASKED = question()
EMPTY = num_tokens(AnswerQuestion((Passage("text", None, ""),), ASKED.question, (), 30))
REPLY = 50


def stage(keep: str) -> AnswerFromTruncatedText:
    common = {"first_page": 0, "answer_words": 30, "answer_page_tags": True}
    return AnswerFromTruncatedText.model_validate({**common, "keep": keep})


def rows(text: str = TEXT, *questions: Question) -> UnitRows:
    asked = questions or (ASKED,)
    given = UnitRows(document=document(text), questions=asked)
    return adding(given, {Lookup: [looked_up(question_id=q.question_id) for q in asked]})


def answered(keep: str, engine: Listener, text: str = TEXT) -> Answer:
    (answer,), _ = run(stage(keep), rows(text), engine, reply_tokens={"answer": REPLY})
    assert isinstance(answer, Answer)
    return answer


def shown(answer: Answer, text: str = TEXT) -> str:
    (span,) = answer.context_spans
    return text[span.start_char : span.end_char]


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (9, TEXT, TEXT),
        (8, TEXT, TEXT),
        (7, TEXT[:40], TEXT[6:]),
        (6, TEXT[:33], TEXT[11:]),
        (1, "  The", "it. "),
    ],
)  # fmt: skip
def test_words_up_to_the_last_token(words: int, first: str, last: str) -> None:
    """Room for the question, the reply and so many words of text."""
    for keep, expected in (("first", first), ("last", last)):
        engine = always("Noon.", EMPTY + REPLY + words)
        answer = answered(keep, engine)
        assert shown(answer) == expected
        assert answer.num_context_words == len(expected.split()) == min(words, 8)
        assert answer.compression_rate == 100 * (1 - min(words, 8) / 8)
        assert (answer.page_indexes, answer.problem, answer.detail) == ((), None, None)
        (prompt,) = engine.prompts()
        assert expected.strip() in prompt
        assert len(prompt.split()) == EMPTY + min(words, 8)


@pytest.mark.parametrize("context", [EMPTY + REPLY, EMPTY + REPLY - 1, REPLY, 1])
def test_a_question_that_leaves_no_room_for_a_word_of_the_text_is_not_sent(context: int) -> None:
    engine = never()
    engine.context_tokens = context
    answer = answered("first", engine)
    assert (answer.problem, answer.answer) == ("context_overflow", None)
    assert answer.context_spans == ()


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_long_text_is_counted_a_few_times_and_never_whole(keep: str) -> None:
    drawn = random.Random(7)
    words = ["".join(drawn.choices("abc", k=drawn.randint(1, 12))) for _ in range(100_000)]
    counted: list[int] = []

    class Counting(Listener):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            tokens = await super().count_tokens(messages)
            counted.append(tokens)
            return tokens

    engine = Counting(lambda request: "Noon.", context_tokens=EMPTY + REPLY + 2000)
    answer = answered(keep, engine, " ".join(words))
    kept = words[:2000] if keep == "first" else words[-2000:]
    assert shown(answer, " ".join(words)) == " ".join(kept)
    assert len(counted) <= 14
    assert max(counted) < 10_000


def test_unspaced_text_is_cut_between_characters() -> None:
    """Tokens are characters here, as they nearly are of a model."""

    class Characters(Listener):
        async def count_tokens(self, messages: Sequence[Message]) -> int:
            return sum(len(message["content"]) for message in messages)

    text = "钟在正午敲响没有人承认"
    engine = Characters(lambda request: "Noon.")
    answered("first", engine, text)
    (prompt,) = engine.prompts()
    engine.context_tokens = len(prompt) + REPLY - 4
    assert shown(answered("first", engine, text), text) == text[:-4]
    assert shown(answered("last", engine, text), text) == text[4:]
