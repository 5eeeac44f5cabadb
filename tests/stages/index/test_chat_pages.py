"""Sessions and rounds of chat histories as pages, their turns and dates."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


roles = st.sampled_from(["user", "assistant", "system"])
words = st.text(st.characters(codec="utf-8", exclude_characters="\f"), max_size=20).map(
    lambda text: " ".join(text.split()) or "-"
)
# A turn may have lines that begin like turns: a dialogue that was pasted.
contents = st.lists(words | words.map("user: {}".format), min_size=1, max_size=3).map("\n".join)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.tuples(roles, contents), min_size=1, max_size=6), max_size=5))
def test_any_history_is_tiled_by_its_rounds(sessions: list[list[tuple[str, str]]]) -> None:
    text = "".join(
        f"\f[2023/05/{day:02} (Tue) 10:00]\n"
        + "".join(f"{role}: {content}\n\n" for role, content in turns)
        for day, turns in enumerate(sessions, 1)
    )
    rounds, whole = pages(text, "round"), pages(text, "session")
    assert "".join(rounds) == "".join(whole) == text
    assert len(whole) == max(1, len(sessions))
    for turns, page in zip(sessions, whole, strict=False):
        assert turns_of(page) == [Turn(role, content) for role, content in turns]
    # a round for each turn of the user, or one without any
    asked = [max(1, sum(role == "user" for role, _ in turns)) for turns in sessions]
    assert len(rounds) == max(1, sum(asked))
    dates = [f"2023/05/{day:02} (Tue) 10:00" for day, num in enumerate(asked, 1)
             for _ in range(num)]  # fmt: skip
    assert session_dates(rounds) == (dates or [""])


def test_one_side() -> None:
    first, second, third, _ = pages(TEXT, "round")
    assert said_by(first, "user") == "Hi."
    assert said_by(first + second, "user") == "Hi. Fine."
    assert said_by(third, "assistant") == "Welcome back."
    assert said_by("assistant: Alone.", "user") == "assistant: Alone."
