"""Replies as models write them, each with what a person reads in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.refusals import Refusals
from pipeline.core.reply_forms import plain_text
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.prompts.answer import parse_option
from stages.prompts.judging import parse_strict, parse_verdict
from stages.prompts.readagent_look_up import (
    ParallelLookUp,
    parse_page_list,
    parse_page_or_stop,
    parse_pages,
)
from stages.prompts.readagent_memory import parse_break_point

pytestmark = pytest.mark.sampled

PROMPTS_FOLDER = CONF / "prompts"
WORDS = load_family(PROMPTS_FOLDER / "generic", [PROMPTS_FOLDER]).refusals["look_up_p"]
LOOK_UP = ParallelLookUp.samples()[0]

BREAK_POINTS: list[tuple[str, int | None]] = [
    ("Breakpoint: <57> Because the next line is a title.", 57),
    ("Break point: **<57>**\nBecause **label <60>** would cut the letter.", 57),
    ("BREAK POINT = 57.", 57),
    ("Break point: label <57>", 57),
    ("The natural break point would be after <57>, not <60>.", 57),
    ("Break point：＜57＞", 57),
    ("Break point: <57>\nBecause the next break point would be <60>.", 57),
    ("Label <60> might do, but the break point is <57>.", 57),
    ("The break point might be <60>.\nBreak point: <57>", 57),
    ("<57>\nBecause label <60> is inside a dialogue.", 57),
    ("57.\nThe scene ends.", 57),
    ("A good place is <57>: he leaves. Yes, <57>.", 57),
    ("0", 0),
    ("", None), ("57 people leave the hall.", None), ("Break point: none", None),
    ("Break point: <3>, no, wait.\nBreak point: <57>", None),
    ("A break point is <57>. A break point is <60>.", None),
    ("Either <57> or <60>.", None), ("Break point: <5 7>", None), ("Break point: 57-60", None),
    ("Break point: -57", None), ("Break point: 57.5", None), ("Break point: <1234567890>", None),
]  # fmt: skip

PAGES: list[tuple[str, tuple[int, ...] | None]] = [
    ("I want to look up Page [7,2,12,15,7] to ...", (7, 2, 12, 15, 7)),
    ("I want to look up Page [**2**, **7**] to compare", (2, 7)),
    ("I want to look up Page [Page 2, <7>]", (2, 7)),
    ("I want to look up Pages [2 and 7; 8;]", (2, 7, 8)),
    ("I want to look up Page [[2, 7]]", (2, 7)),
    ("[2, 7]", (2, 7)),
    ("The will [see above] is short. I want to look up Page [3].", (3,)),
    ("Page [3] mentions it. So I want to look up Page [4, 3] first.", (4, 3)),
    ("The gist of page 3 mentions it, so I want to look up Page [7]", (7,)),
    ("Page 3 mentions it; I need to see pages 7 and 8", (7, 8)),
    ("I want to look up Page 3 and then Page 5.", (3, 5)),
    ("I want to look up Page [3] and Page [5]", (3, 5)),
    ("[1] is about the sister. I want to look up Page [7]", (7,)),
    ("I want to look up Page [1, two, 7-12, ...]", (1,)),
    ("I want to look up Page [ ] because nothing is needed", ()),
    ("I want to look up Page [none]", ()), ("none, since the notes say it", ()),
    ("I want to look up no page because nothing more is needed", ()),
    ("I don’t need to look up any pages to answer this.", ()),
    ("I can answer the question without looking up any page.", ()),
    ("I don't need to look up Page 3 or any other.", ()), ("Page 3 is not needed.", ()),
    ("Page 3 is not needed, Page 5 is.", (5,)), ("Not Page 3 but Page 5", (5,)),
    ("I don't need any page except Page 5.", (5,)),
    ("I do not have the answer, I want to look up page 3", (3,)),
    ("I want to look up Page 3. Nothing more is needed.", (3,)),
    ("pp. 5, 7", (5, 7)), ("Page no. 5", (5,)), ("(5 and 7).", (5, 7)), ("<Page 3>", (3,)),
    ("I want to look up Page 3 to see why he did not leave.", (3,)),
    ("Pages 3, 5, and 9 please", (3, 5, 9)),
    ("I want to look up Page [3]. I want to look up Page [7].", (3, 7)),
    ("I want to look up Page [7–12]", None), ("I want to look up pages 7 to 12", None),
    ("[3] is about the sister, [7] about the brother.", None),
    ("Page 3 mentions the letter. Page 7 mentions the sister.", None),
    ("I want to look up Page [X]", None), ("I want to look up Page [2, 7", None),
    ("I want to look up Page [-1]", None), ("I want to look up Page [1234567890]", None),
    ("", None), ("I would need Page twelve", None), ("5 pages", None), ("7-12", None),
    ("I don't need any page but the last one.", None), ("I do not have enough information.", None),
    ("None of the gists says it.", None),
]  # fmt: skip

REFUSED = (
    "We never really need any more.", "I won't look at pages.", "Neither page: none - clear",
    "No extra reading is required.", "Zero pages need to be read again.", "no look-ups, please",
    "Nothing else is missing.", "None of them needed", "It is unneeded.", "They are irrelevant.",
    "They are not relevant.", "That does not help.", "You needn't read on.", "I need not.",
    "The gists suffice.", "It can now be answered.", "I can already answer it.",
    "We have everything we need.", "I already know the answer.", "I have the answer",
    "So the summary is sufficient, as I said.", "It is not useful to see the full text",
)  # fmt: skip
NOT_REFUSED = (
    "I cannot answer it.", "If I can answer", "I do not have the answer.", "I do not know,",
    "The notes are hardly enough.", "It is enough once I read more", "I need more.", "No.",
    "Nothing in the gists says it.", "I do not know the page.", "Not sure which page.",
    "No page except the last one is needed.", "All pages are needed.", "The book does not say it",
    "I want to look up nothing but page twelve", "Every page is required.", "No, the last page.",
)  # fmt: skip

TURNS: list[tuple[str, int | str | None]] = [
    ("**Page** 3", 3), ("Page #3", 3), ("Page number 3", 3), ("[3].", 3),
    ("I want to look up **Page 3** to see the harbour. Then STOP.", 3),
    ("The gist of page 3 mentions it, so I want to look up Page 7", 7),
    ("Page 3: mentions it\nPage 7: has it\nI want Page 7", 7),
    ("Let's look at Page 7. The gist of page 3 mentions it.", 7),
    ("Page 7 (page 3 only mentions it)", 7), ("I want Page [7], not page 3.", 7),
    ("I wonder why the bus did not stop. Page 3", 3),
    ("**STOP**", "stop"), ("I know enough.\nStop", "stop"), ("I want to stop.", "stop"),
    ("I know enough: STOP. Page 3 was the one.", "stop"),
    ("Page 3 is not needed, so I STOP", "stop"), ("Page 3 was the one.\n\n**STOP**", "stop"),
    ("Page [3] says it all. [Stop].", "stop"),
    ("I don't need Page 3. Page 5", 5), ("Page 3 does not help; Page 4", 4),
    ("I do not want to stop yet, Page 3", 3),
    ("Page 5 (the one on the price is not needed)", 5),
    ("I want to look up Page 3. Then I want to look up Page 7.", None),
    ("Page 3 mentions the letter. Page 7 mentions the sister.", None),
    ("I want to look up Page 3.\nSTOP", None), ("I don't need to look up Page 3", None),
    ("", None), ("They never stop at the harbour.", None), ("STOPPED", None), ("Page X", None),
    ("Page -3", None), ("Page 1234567890", None),
]  # fmt: skip

OPTIONS: list[tuple[str, int | str | None]] = [
    ("Answer：（C）", 2), ("**Answer:** C", 2), ("Answer: [C]", 2), ("Final answer: Option C", 2),
    ("Answer: C, because he was late", 2), ("Answer: C He was late.", 2),
    ("Answer: A because he was late", 0), ("The best choice is (D).", 3),
    ("c", 2), ("C)", 2), ("C - He was late.", 2), ("A", 0), ("B is right.", 1),
    ("He was late, as (A) says, but not (B).\nAnswer: (B)", 1),
    ("Although one might think the answer is (D), he was late. The answer is (B).", 1),
    ("Although (A) fits, the answer is (B).", 1), ("I think the answer might be (B).", 1),
    ("Answer: (B)\nThe other answer would be (D).", 1),
    ("A man walks in, so he was late. Answer: (B)", 1), ("He was late.\n\n**C**", 2),
    ("He was late, which makes (C) right. Yes, (C).", 2),
    ("Option C is the only one that fits.", 2),
    ("Answer: (E)", "out_of_range"), ("Z", "out_of_range"),
    ("", None), ("A man walks in.", None), ("Answer: A man walks in.", None), ("3", None),
    ("I think he was late.", None), ("U.S. forces", None),
    ("Answer: (B)\nNo, he was not.\nAnswer: (D)", None),
    ("Although one might think the answer is (D), it is (B).", None),
    ("Answer: A or B", None), ("Answer: (A) and (B)", None), ("The answer is not (B).", None),
    ("Neither (A) nor (B) nor (C).", None), ("Answer: none of these", None),
]  # fmt: skip

YES_NO: list[tuple[str, str | None, str | None]] = [  # reply, strict, permissive
    ("**YES**", "yes", "yes"), ("> Yes!", "yes", "yes"), ("Answer: YES", "yes", "yes"),
    ("Yes. No detail is missing.", "yes", "yes"), ("Yes. The verdict is yes.", "yes", "yes"),
    ("**Verdict:** No", "no", "no"), ("No, not even partially.", "no", "no"),
    ("no - they share nothing", "no", "no"), ("No.\nYes would be too kind.", "no", "no"),
    ("No. One might say: yes, it agrees.", "no", "no"), ("My verdict... no", None, None),
    ("Yes, the name is the same. Final verdict: NO", None, None), ("No.\n\nYES", None, None),
    ("**Yes**, *partially*", None, "partially"), ("Yes partially correct", None, "partially"),
    ("Yes, but only in part.", None, "partially"),
    ("Yes, it agrees partially with the key.", None, "partially"),
    ("partial.", None, "partially"), ("Partly, the price is missing.", None, "partially"),
    ("Partially yes", None, "partially"),
]  # fmt: skip

MALFORMED = (
    "", " ", "\n\n", "maybe", "Maybe yes", "Yes and no", "Yes/no", "YES or NO", "yes, no",
    "No, yes", "No and yes", "Yes? No.", "Y", "N", "Not sure", "Not really", "None", "Nothing",
    "Yesterday", "Noon", "yesno", "Neither yes nor no", "Hard to say.", "It depends.", "true",
    "42", "<57>", "Answer:", "The answer agrees.", "I would say yes", "No, only partially",
    "Partially no", "**", "???",
)  # fmt: skip


@pytest.mark.parametrize(("reply", "label"), BREAK_POINTS)
def test_break_point(reply: str, label: int | None) -> None:
    assert parse_break_point(reply) == label


@pytest.mark.parametrize(("reply", "pages"), PAGES)
def test_pages(reply: str, pages: tuple[int, ...] | None) -> None:
    assert _pages(reply) == pages


@pytest.mark.parametrize("reply", REFUSED)
def test_refusals(reply: str) -> None:
    assert parse_pages(reply) is None, "the family's words alone tell"
    assert _pages(reply) == ()


@pytest.mark.parametrize("reply", NOT_REFUSED)
def test_what_is_no_refusal(reply: str) -> None:
    assert _pages(reply) is None


def test_other_words_refuse_in_other_families() -> None:
    words = Refusals(negations=("keine",), needed=("seite",), enough=("genug",), alone=("nichts",))
    for reply in ("Ich brauche keine weitere Seite.", "Das ist genug.", "Nichts."):
        assert LOOK_UP.refusal(plain_text(reply), words) == ()
        assert LOOK_UP.refusal(plain_text(reply), WORDS) is None
    assert LOOK_UP.refusal("No page is needed.", words) is None


def _pages(reply: str) -> tuple[int, ...] | None:
    read = parse_pages(reply)
    return LOOK_UP.refusal(plain_text(reply), WORDS) if read is None else read


@pytest.mark.parametrize(("reply", "turn"), TURNS)
def test_page_or_stop(reply: str, turn: int | str | None) -> None:
    assert parse_page_or_stop(reply) == turn


def test_a_reply_that_mentions_too_many_pages_asks_for_none() -> None:
    """A megabyte of mentions took 4 CPU seconds."""
    assert parse_page_or_stop("Page 3. " * 1_000) == 3
    assert parse_page_or_stop("Page 3. " * 1_001) is None


@pytest.mark.parametrize(("reply", "option"), OPTIONS)
def test_option(reply: str, option: int | str | None) -> None:
    assert parse_option(reply, 4) == option


@pytest.mark.parametrize(("reply", "strict", "permissive"), YES_NO)
def test_verdict(reply: str, strict: str | None, permissive: str | None) -> None:
    assert (parse_strict(reply), parse_verdict(reply)) == (strict, permissive)


@pytest.mark.parametrize(
    ("reply", "pages"),
    [("look up Page [3, 1] si", (3, 1)), ("Page [] bec", ()), ("Page [none", None),
     ("Page 1", None), ("No page is nee", None), ("5, 7", None)],
)  # fmt: skip
def test_a_closed_list_alone_counts_in_a_cut_reply(
    reply: str, pages: tuple[int, ...] | None
) -> None:
    assert parse_page_list(reply) == pages


@pytest.mark.parametrize("reply", MALFORMED)
def test_malformed_verdicts_are_unscored(reply: str) -> None:
    assert parse_verdict(reply) is None
    assert parse_strict(reply) is None


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
