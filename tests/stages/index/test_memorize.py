"""What the memory model is shown: the kinds of memories, and what becomes of what does not fit."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import AccountingError
from stages.index.memorize import MemorizeChunks, MemorizeGists, MemorizeText, memory_parts
from stages.prompts.answer import Passage
from stages.prompts.memorag import ClueQuestions, ClueSpans, DraftAnswer, KeyPoints
from stages.tables.pages import MemoryPassage
from tests.support.reading import Listener, adding, always, book, family, never, num_tokens, run

PAGES = ("One two three. ", "Four five six seven.\n\n", "Eight nine.")
GISTS = ("one", "four five", "eight")
TEXT = "".join(PAGES)


@pytest.mark.parametrize(
    ("kind", "fit", "words", "parts"),
    [
        ("text", "refuse", 1, [[TEXT]]), ("text", "head", 9, [[TEXT]]),
        ("text", "head", 4, [["One two three. Four"]]),
        ("text", "tail", 4, [["six seven.\n\nEight nine."]]), ("text", "split", 9, [[TEXT]]),
        ("text", "split", 4, [["One two three."], ["Four five six seven."], ["Eight nine."]]),
        ("text", "split", 6, [["One two three."], ["Four five six seven.\n\nEight nine."]]),
        ("gist", "refuse", 1, [["one", "four five", "eight"]]),
        ("gist", "head", 3, [["one", "four five"]]), ("gist", "tail", 3, [["four five", "eight"]]),
        ("gist", "split", 3, [["one", "four five"], ["eight"]]),
    ],
)  # fmt: skip
def test_text_and_gists_that_do_not_fit(
    kind: Any, fit: Any, words: int, parts: list[list[str]]
) -> None:
    """What is shown together, beside the longest prompt, its reply and a question of 7 tokens.
    Nothing is asked."""
    around = max(
        num_tokens(prompt((Passage("text", None, ""),), "", ())) + family().max_reply_tokens(prompt)
        for prompt in (ClueSpans, ClueQuestions, DraftAnswer, KeyPoints)
    )
    stage = {"text": MemorizeText, "gist": MemorizeGists}[kind](memory_fit=fit, question_tokens=7)
    rows = book(PAGES, GISTS)
    made, calls = run(stage, rows, always("", around + 7 + words))
    assert memory_parts(adding(rows, {MemoryPassage: made})) == [
        tuple(Passage(kind, None, text) for text in part) for part in parts
    ]
    assert calls == ()


def test_long_chunks_get_gists_of_the_memory_model() -> None:
    stage = MemorizeChunks(memory_fit="refuse", question_tokens=0)
    replies = {"One": "A.", "Four": "B, C.", "Eight": " "}
    engine = Listener(lambda r: next(v for k, v in replies.items() if k in str(r.messages)))
    rows, calls = run(stage, book(PAGES), engine)
    assert [(row.gist, row.num_words, row.problem) for row in rows] == [
        ("A.", 1, None), ("B, C.", 2, None), ("", 0, "unparseable"),
    ]  # fmt: skip
    assert [(call.page_index, call.prompt) for call in calls] == [
        (index, "gist_chunk") for index in range(3)
    ]
    assert [row.why_unusable() for row in rows] == [None] * 3
    assert "timeout" in replace(rows[0], problem="timeout").why_unusable()


def test_rows_out_of_order_are_refused() -> None:
    stage = MemorizeText(memory_fit="refuse", question_tokens=0)
    (row,), _ = run(stage, book(PAGES), never())
    wrong: list[dict[str, int]] = [{"part_index": 1}, {"end_char": 9999}, {"start_char": -1}]
    for changes in wrong:
        with pytest.raises(AccountingError, match=r"memory.passages"):
            stage.check(book(PAGES), [replace(row, **changes)])
