"""Pages that no model chooses: segments of at most so many tokens; sessions and rounds of chats,
their turns and dates."""

import asyncio
import math
from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateByTokens, PaginateChat
from stages.text.chat_text import Turn, said_by, session_dates, turns_of
from stages.text.fit_to_limit import segments
from tests.support.reading import document, never, run


async def words(text: str) -> int:
    return len(text.split())


async def characters(text: str) -> int:
    return len(text)


def cut(text: str, max_tokens: int) -> list[str]:
    """The segments, tokens being words; they tile the text."""
    spans = asyncio.run(segments(text, max_tokens, words))
    assert [0, *(end for _, end in spans)] == [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in spans]


ONE, TWO, THREE = "The bell rings at noon. ", "Nobody admits it.\n\n", "It was wind, he says."


@pytest.mark.parametrize(
    ("max_tokens", "parts"),
    [
        (13, [ONE + TWO + THREE]),
        (12, [ONE + TWO, THREE]),
        (8, [ONE + TWO, THREE]),
        (7, [ONE, TWO, THREE]),
        (5, [ONE, TWO, THREE]),
        (4, ["The bell rings at ", "noon. " + TWO, "It was wind, he ", "says."]),
        (1, [f"{word} " for word in ONE.split()] + ["Nobody ", "admits ", "it.\n\n"]
            + ["It ", "was ", "wind, ", "he ", "says."]),
    ],
)  # fmt: skip
def test_whole_sentences_as_many_as_fit_else_words(max_tokens: int, parts: list[str]) -> None:
    assert cut(ONE + TWO + THREE, max_tokens) == parts


def test_a_sessions_header_stays_with_what_follows() -> None:
    """Six words fit: the header of three and the session's first three."""
    first, second = "user: Hello. ", "\f[2023/05/30 (Tue) 21:48]\nuser: Good day. Who rang?"
    assert cut(first + second, 6) == [first, second[: second.index("Who")], "Who rang?"]


def test_no_segment_crosses_a_form_feed() -> None:
    text = "one two three.\n\ffour five six. seven eight.\n"
    for tokens, ends in (
        (100, text.replace("\f", "|\f")),
        (4, text.replace("\f", "|\f").replace("sev", "|sev")),
    ):
        stage = PaginateByTokens(page_breaks=True, segment_tokens=tokens)
        rows, calls = run(stage, UnitRows(document=document(text)), never())
        assert ([page.text for page in rows], calls) == (ends.split("|"), ())


def test_a_word_too_long_is_cut_between_characters() -> None:
    spans = asyncio.run(segments("ab abcdefghij. Ab", 4, characters))
    assert ["ab abcdefghij. Ab"[a:b] for a, b in spans] == ["ab ", "abcd", "efgh", "ij. ", "Ab"]


def test_a_long_text_is_measured_a_few_times_a_segment() -> None:
    """Never the whole of it: no text of more than three times the limit."""
    text = "The bell of the old mill rings at noon, and nobody admits it. " * 3000
    measured: list[int] = []

    async def count(part: str) -> int:
        measured.append(len(part.split()))
        return measured[-1]

    spans = asyncio.run(segments(text, 500, count))
    assert len(spans) == math.ceil(3000 / (500 // 13))
    assert len(measured) <= 6 * len(spans)
    assert max(measured) <= 3 * 500


FIRST_DATE = "\f[2023/05/20 (Sat) 10:00]\n"
SECOND_DATE = "\f[2023/05/30 (Tue) 21:48]\n"
HISTORY = (
    f"{FIRST_DATE}user: Hi.\n\nassistant: Hello!\nHow are you?\n\nuser: Fine.\n\n"
    f"{SECOND_DATE}assistant: Welcome back.\n\nuser: user: is a word.\n\nuser: Bye.\n\n"
)


def pages(text: str, value: Any) -> list[str]:
    rows, _ = run(PaginateChat(value=value), UnitRows(document=document(text)), never())
    return [page.text for page in rows]


def test_rounds_begin_with_the_user() -> None:
    assert pages(HISTORY, "round") == [
        f"{FIRST_DATE}user: Hi.\n\nassistant: Hello!\nHow are you?\n\n",
        "user: Fine.\n\n",
        f"{SECOND_DATE}assistant: Welcome back.\n\nuser: user: is a word.\n\n",
        "user: Bye.\n\n",
    ]


@pytest.mark.parametrize("text", ["", "A plain text.\n\nOf two paragraphs.", f"{FIRST_DATE}\n\n"])
def test_what_is_no_chat_is_one_page(text: str) -> None:
    assert pages(text, "round") == [text]


def test_turns_sides_and_dates_of_pages() -> None:
    first, second, third, last = pages(HISTORY, "round")
    assert turns_of(first) == [Turn("user", "Hi."), Turn("assistant", "Hello!\nHow are you?")]
    assert turns_of(third)[1] == Turn("user", "user: is a word.")
    assert session_dates([first, second, third, last]) == [
        "2023/05/20 (Sat) 10:00", "2023/05/20 (Sat) 10:00", *["2023/05/30 (Tue) 21:48"] * 2,
    ]  # fmt: skip
    assert pages(HISTORY, "session") == [first + second, third + last]
    assert said_by(first, "user") == "Hi."
    assert said_by(first + second, "user") == "Hi. Fine."
    assert said_by(third, "assistant") == "Welcome back."
    assert said_by("assistant: Alone.", "user") == "assistant: Alone."
