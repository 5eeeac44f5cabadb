"""What holds for every reply of a kind; single replies are in tests/data/replies_forms.jsonl."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.prompts import Refusals
from pipeline.core.reply_forms import plain_text
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.prompts.answer import parse_option
from stages.prompts.readagent_look_up import (
    ParallelLookUp,
    parse_page_or_stop,
    parse_pages,
)
from stages.prompts.readagent_memory import parse_break_point

pytestmark = pytest.mark.sampled

PROMPTS_FOLDER = CONF / "prompts"
WORDS = load_family(PROMPTS_FOLDER / "generic", [PROMPTS_FOLDER]).refusals["look_up_p"]
LOOK_UP = ParallelLookUp.samples()[0]


def test_other_words_refuse_in_other_families() -> None:
    words = Refusals(negations=("keine",), needed=("seite",), enough=("genug",), alone=("nichts",))
    for reply in ("Ich brauche keine weitere Seite.", "Das ist genug.", "Nichts."):
        assert LOOK_UP.refusal(plain_text(reply), words) == ()
        assert LOOK_UP.refusal(plain_text(reply), WORDS) is None
    assert LOOK_UP.refusal("No page is needed.", words) is None


def test_a_reply_that_mentions_too_many_pages_asks_for_none() -> None:
    """A megabyte of mentions took 4 CPU seconds."""
    assert parse_page_or_stop("Page 3. " * 1_000) == 3
    assert parse_page_or_stop("Page 3. " * 1_001) is None


def test_a_page_and_stop_in_one_reply_differ() -> None:
    assert parse_page_or_stop("I want to look up Page 3.\nSTOP") is None


# Forms with a number, and what is read of it.
FORMS: dict[Any, tuple[tuple[str, ...], Any]] = {
    parse_break_point: (
        ("Break point: <{}>", "Breakpoint: <{}>", "Label: <{}>", "The break point is: <{}>"), int,
    ),
    parse_pages: (("I want to look up Page [{0},{0} , {0}] to be sure",), lambda n: (n, n, n)),
    parse_page_or_stop: (("Page {}", "Page [{}]", "I want to look up Page {}"), int),
}  # fmt: skip
DECORATED = ("{}", "**{}**", "*{}*", "`{}`", '"{}"', "> {}", "## {}", "“{}”", " {}")
AFTER = st.sampled_from(["", "\nAs he says.", " "])


@given(st.integers(0, 99_999), st.sampled_from(DECORATED), AFTER)
def test_every_number_is_read_however_it_is_decorated(number: int, sign: str, after: str) -> None:
    for parse, (forms, meant) in FORMS.items():
        for form in forms:
            assert parse(sign.format(form.format(number)) + after) == meant(number), form


@given(st.integers(0, 25), st.sampled_from(DECORATED), AFTER)
def test_every_letter_is_read_however_it_is_decorated(index: int, sign: str, after: str) -> None:
    for form in ("Answer: ({})", "Answer: {}", "The answer is ({})", "({})", "{}.", "{}"):
        if sign != "> {}":  # a quoted letter alone is no grammar of ours
            reply = sign.format(form.format(chr(ord("A") + index))) + after
            assert parse_option(reply, 26) == index, reply
