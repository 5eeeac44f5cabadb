"""What holds for every reply: nothing raises, and what is well-formed is read."""

from hypothesis import example, given
from hypothesis import strategies as st

from stages.prompts.answer import parse_option
from stages.prompts.break_point import parse_break_point
from stages.prompts.look_up_p import parse_page_list, parse_pages
from stages.prompts.look_up_s import parse_page_or_stop
from stages.prompts.rate_strict import parse_strict
from stages.prompts.verdicts import parse_verdict

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
