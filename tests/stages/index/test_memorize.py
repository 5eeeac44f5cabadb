"""What the memory model is shown: the kinds of memories, and what becomes of what does not fit."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import AccountingError
from stages.index.memorize import (
    Memorize,
    MemorizeChunks,
    MemorizeGists,
    MemorizeText,
    memory_parts,
)
from stages.prompts.answer import Passage
from stages.prompts.memorag import ClueQuestions, ClueSpans, DraftAnswer, KeyPoints
from stages.tables.keys import MemoryPassage
from tests.support.reading import Listener, adding, always, book, family, never, num_tokens, run

PAGES = ("One two three. ", "Four five six seven.\n\n", "Eight nine.")
GISTS = ("one", "four five", "eight")
TEXT = "".join(PAGES)
QUESTION_TOKENS = 7


def memorized(kind: type[Memorize], fit: Any, engine: Listener) -> list[MemoryPassage]:
    stage = kind(memory_fit=fit, question_tokens=QUESTION_TOKENS)
    rows, _ = run(stage, book(PAGES, GISTS), engine)
    return rows


def context_for(words: int) -> int:
    """A context, in words, beside whose longest prompt, reply and question there is room for so
    many words of memory."""
    prompts = (ClueSpans, ClueQuestions, DraftAnswer, KeyPoints)
    around = max(
        num_tokens(prompt((Passage("text", None, ""),), "", ())) + family().max_reply_tokens(prompt)
        for prompt in prompts
    )
    return around + QUESTION_TOKENS + words


@pytest.mark.parametrize(
    ("kind", "fit", "words", "parts"),
    [
        (MemorizeText, "head", 9, [(0, TEXT)]),
        (MemorizeText, "head", 4, [(0, "One two three. Four")]),
        (MemorizeText, "tail", 4, [(0, "six seven.\n\nEight nine.")]),
        (MemorizeText, "split", 9, [(0, TEXT)]),
        (MemorizeText, "split", 4,
         [(0, "One two three."), (1, "Four five six seven."), (2, "Eight nine.")]),
        (MemorizeText, "split", 6,
         [(0, "One two three."), (1, "Four five six seven.\n\nEight nine.")]),
        (MemorizeGists, "refuse", 1, [(0, "one"), (0, "four five"), (0, "eight")]),
        (MemorizeGists, "head", 3, [(0, "one"), (0, "four five")]),
        (MemorizeGists, "tail", 3, [(0, "four five"), (0, "eight")]),
        (MemorizeGists, "split", 3, [(0, "one"), (0, "four five"), (1, "eight")]),
    ],
)  # fmt: skip
def test_text_and_gists_that_do_not_fit(
    kind: type[Memorize], fit: str, words: int, parts: list[tuple[int, str]]
) -> None:
    engine = always("", context_for(words))
    rows = memorized(kind, fit, engine)
    texts = [TEXT[row.start_char : row.end_char].strip() for row in rows]
    shown = [text if row.gist is None else row.gist for row, text in zip(rows, texts, strict=True)]
    assert list(zip([row.part_index for row in rows], shown, strict=True)) == parts
    assert engine.requests == []


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
    assert "timeout" in str(replace(rows[0], problem="timeout").why_unusable())


def test_the_parts_are_shown_together() -> None:
    rows = memorized(MemorizeGists, "split", always("", context_for(3)))
    assert memory_parts(adding(book(PAGES), {MemoryPassage: rows})) == [
        (Passage("gist", None, "one"), Passage("gist", None, "four five")),
        (Passage("gist", None, "eight"),),
    ]
    (whole,) = memory_parts(
        adding(book(PAGES), {MemoryPassage: memorized(MemorizeText, "refuse", never())})
    )
    assert whole == (Passage("text", None, TEXT),)


@pytest.mark.parametrize(
    "wrong",
    [{"passage_index": 5}, {"part_index": 1}, {"end_char": 9999}, {"start_char": -1}],
    ids=str,
)
def test_rows_out_of_order_are_refused(wrong: dict[str, Any]) -> None:
    stage = MemorizeText(memory_fit="refuse", question_tokens=0)
    (row,) = memorized(MemorizeText, "refuse", never())
    stage.check(book(PAGES), [row])
    with pytest.raises(AccountingError, match=r"memory.passages"):
        stage.check(book(PAGES), [replace(row, **wrong)])
