"""Sessions and rounds of chat histories as pages, their turns and dates."""

from typing import Any

import pytest

from pipeline.core.rows import UnitRows
from stages.index.paginate import PaginateChat
from stages.text.chat_text import Turn, said_by, session_dates, turns_of
from tests.support.reading import document, never, run

ONE = "\f[2023/05/20 (Sat) 10:00]\n"
TWO = "\f[2023/05/30 (Tue) 21:48]\n"
TEXT = (
    f"{ONE}user: Hi.\n\nassistant: Hello!\nHow are you?\n\nuser: Fine.\n\n"
    f"{TWO}assistant: Welcome back.\n\nuser: user: is a word.\n\nuser: Bye.\n\n"
)


def pages(text: str, value: Any) -> list[str]:
    made, _ = run(PaginateChat(value=value), UnitRows(document=document(text)), never())
    return [page.text for page in made]


def test_rounds_begin_with_the_user() -> None:
    assert pages(TEXT, "round") == [
        f"{ONE}user: Hi.\n\nassistant: Hello!\nHow are you?\n\n",
        "user: Fine.\n\n",
        f"{TWO}assistant: Welcome back.\n\nuser: user: is a word.\n\n",
        "user: Bye.\n\n",
    ]


@pytest.mark.parametrize("text", ["", "A plain text.\n\nOf two paragraphs.", f"{ONE}\n\n"])
def test_what_is_no_chat_is_one_page(text: str) -> None:
    assert pages(text, "round") == [text]


def test_turns_sides_and_dates_of_pages() -> None:
    first, second, third, last = pages(TEXT, "round")
    assert turns_of(first) == [Turn("user", "Hi."), Turn("assistant", "Hello!\nHow are you?")]
    assert turns_of(third)[1] == Turn("user", "user: is a word.")
    assert session_dates([first, second, third, last]) == [
        "2023/05/20 (Sat) 10:00", "2023/05/20 (Sat) 10:00", *["2023/05/30 (Tue) 21:48"] * 2,
    ]  # fmt: skip
    assert pages(TEXT, "session") == [first + second, third + last]
    assert said_by(first, "user") == "Hi."
    assert said_by(first + second, "user") == "Hi. Fine."
    assert said_by(third, "assistant") == "Welcome back."
    assert said_by("assistant: Alone.", "user") == "assistant: Alone."
