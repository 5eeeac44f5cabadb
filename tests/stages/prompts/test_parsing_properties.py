"""What holds for every reply: nothing raises, and what is well-formed is read."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.prompts.answer_question import parse_option
from stages.prompts.choose_pages import parse_page_list, parse_page_or_stop, parse_pages
from stages.prompts.judging import parse_strict, parse_verdict
from stages.prompts.pages_and_gists import parse_break_point

pytestmark = pytest.mark.sampled

# Text made of what the parsers look for breaks them sooner than random characters do.
_PIECES = st.sampled_from(
    [
        "Break point:", "label", "<57>", "<", ">", "[", "]", "(", ")", "[2, 7]", "Page", "pages",
        "3", "and", "to", "-", "–", ",", ".", ":", "**", "`", '"', "STOP", "stop", "look up",
        "Answer:", "is", "(C)", "C", "A", "I", "option", "yes", "no", "Yes", "partially", "or",
        "not", "need", "none", "enough", "<think>", "</think>", "٣", "²", "＜", "１", "𝟘",
        " ", "\n", "\t", "\x00", "\u2028", "9" * 20,
    ]
)  # fmt: skip
_REPLIES = st.text() | st.lists(_PIECES).map("".join) | st.lists(_PIECES).map(" ".join)


@settings(deadline=None)  # of seconds a busy machine decides
@given(_REPLIES, st.integers(0, 26))
@example("9" * 5000, 4)
@example("Page [" + "9" * 5000 + "]", 4)
@example("Break point: <" + "9" * 5000 + ">", 4)
@example("yes" + " " * 5000 + "\n" * 5000 + "x", 4)
@example("label:" + " " * 5000 + "x", 4)
@example("not " + "it is " * 500 + "Page 3", 4)
@example("nothing " + "more of it " * 500, 4)
def test_nothing_raises(reply: str, num_options: int) -> None:
    label, pages = parse_break_point(reply), parse_pages(reply)
    assert label is None or label >= 0
    assert pages is None or all(page >= 0 for page in pages)
    listed = parse_page_list(reply)
    assert listed is None or listed == pages
    turn = parse_page_or_stop(reply)
    assert turn in (None, "stop") or isinstance(turn, int)
    option = parse_option(reply, num_options)
    assert option in (None, "out_of_range") or option in range(num_options)
    assert parse_strict(reply) in ("yes", "no", None)
    assert parse_verdict(reply) in ("yes", "partially", "no", None)


_NUMBERS = st.integers(0, 99_999)
_DECORATED = st.sampled_from(
    ["{}", "**{}**", "*{}*", "`{}`", '"{}"', "> {}", "## {}", "“{}”", " {}"]
)
_BEFORE = st.sampled_from(["", "Let me think about it.\n\n", "There are 12 of them. "])
_AFTER = st.sampled_from(["", "\nBecause of what he says.", " "])


@given(
    _NUMBERS,
    st.sampled_from(
        ["Break point: <{}>", "Breakpoint: <{}>", "Label: <{}>", "The break point is: <{}>"]
    ),
    _DECORATED, _BEFORE, _AFTER,
)  # fmt: skip
def test_break_point_round_trip(n: int, form: str, deco: str, before: str, after: str) -> None:
    assert parse_break_point(before + deco.format(form.format(n)) + after) == n


@given(st.lists(_NUMBERS), st.sampled_from([", ", ",", " , "]), _DECORATED, _BEFORE, _AFTER)
def test_pages_round_trip(ns: list[int], sep: str, deco: str, before: str, after: str) -> None:
    reply = f"I want to look up Page [{sep.join(map(str, ns))}] to be sure"
    assert parse_pages(before + deco.format(reply) + after) == tuple(ns)


@given(_NUMBERS, st.sampled_from(["Page {}", "Page [{}]", "I want to look up Page {}"]), _DECORATED)
def test_page_round_trip(n: int, form: str, deco: str) -> None:
    assert parse_page_or_stop(deco.format(form.format(n))) == n


@given(
    st.integers(0, 25),
    st.sampled_from(["Answer: ({})", "Answer: {}", "The answer is ({})", "({})", "{}.", "{}"]),
    _DECORATED,
    _AFTER,
)
def test_option_round_trip(index: int, form: str, deco: str, after: str) -> None:
    reply = deco.format(form.format(chr(ord("A") + index)))
    if not reply.startswith("> "):  # a quoted letter alone is no grammar of ours
        assert parse_option(reply + after, 26) == index


# Values in passing, as justifications have them; none of them states one.
_PASSING = st.sampled_from(
    [
        "The gist of page {} mentions it, so ", "One might think of label <{}> or option (Z). ",
        "Page {} mentions it, and ", "Although the next label would be <{}>, ", "",
    ]
)  # fmt: skip


@given(_NUMBERS, _NUMBERS, _PASSING, st.sampled_from(["Page {}", "Page [{}]", "page <{}>"]))
def test_a_page_in_passing_is_not_the_one_asked_for(n: int, other: int, by: str, page: str) -> None:
    reply = f"{by.format(other)}I want to look up {page.format(n)}"
    assert parse_page_or_stop(reply) == n
    assert parse_pages(reply) == (n,)


@given(_NUMBERS, _NUMBERS, _PASSING, st.sampled_from([" ", "\n"]))
def test_a_label_in_passing_is_not_the_one_chosen(n: int, other: int, by: str, gap: str) -> None:
    assert parse_break_point(f"Break point: <{n}>{gap}{by.format(other)}") == n
    assert parse_break_point(f"{by.format(other)}\nBreak point: <{n}>") == n


@given(
    st.integers(0, 25), st.integers(0, 25), st.sampled_from(["might be", "may seem to be", "is"])
)
def test_an_option_in_passing_is_not_the_one_chosen(index: int, other: int, verb: str) -> None:
    letter, passing = (chr(ord("A") + place) for place in (index, other))
    doubt = f"Although one might think the answer {verb} ({passing})"
    assert parse_option(f"The answer is ({letter}). {doubt}.", 26) == index
    assert parse_option(f"{doubt}, it is not.\nAnswer: ({letter})", 26) == index


@given(_NUMBERS, _NUMBERS, st.integers(0, 25), st.integers(0, 25))
def test_two_statements_that_differ_are_unreadable(n: int, m: int, i: int, j: int) -> None:
    same_number, same_letter = n if n == m else None, i if i == j else None
    first, second = (chr(ord("A") + place) for place in (i, j))
    assert parse_break_point(f"Break point: <{n}>\nBreak point: <{m}>") == same_number
    assert parse_page_or_stop(f"I want Page {n}. I want Page {m}.") == same_number
    assert parse_pages(f"Look up Page [{n}]. Look up Page [{m}].") == ((n == m and (n,)) or None)
    assert parse_option(f"Answer: ({first})\nAnswer: ({second})", 26) == same_letter


@given(st.lists(st.integers(0, 999) | st.sampled_from(["two", "the last", "...", "7-12"])))
def test_the_numbers_of_a_list_are_read(items: list[int | str]) -> None:
    numbers = tuple(item for item in items if isinstance(item, int))
    read = parse_pages(f"I want to look up Page [{', '.join(map(str, items))}]")
    assert read == (None if items and not numbers else numbers)
