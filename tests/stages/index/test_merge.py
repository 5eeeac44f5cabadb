"""Merging pages: which are merged, why the others are not, and when it stops.

The engine counts words, so that what fits is worked out by hand from the templates' own words.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.index.merge import CopiedPages, MergedPages
from stages.prompts.choose_pages import ParallelLookUp
from stages.prompts.pages_and_gists import ShortenPage
from stages.prompts.passages import Passage
from stages.tables.pages import Page
from tests.support.reading import Listener, book, in_turn, never, num_tokens, run

PAGE = "one two three four five six seven eight nine ten\n\n"  # ten words
REPLIES = 128 + 512  # the budgets of a look-up and an answer
NOTHING = num_tokens(ParallelLookUp((), "", (), 1))
INTRO = num_tokens(ParallelLookUp((Passage("page", 0, "x"),), "", (), 1)) - NOTHING - 3
TAG = 2  # words of a page's tag: <Page 0>
SHOWN = num_tokens(ShortenPage(page="x")) - 1


def context(num_pages: int, gist_words: int, page_words: int = 10) -> int:
    """The context that holds so many pages, one of them raw and the others gists, to the word."""
    memory = num_pages * TAG + (num_pages - 1) * gist_words + page_words
    return NOTHING + INTRO + memory + REPLIES


def stage(**settings: Any) -> MergedPages:
    own: dict[str, Any] = {
        "not_sure": "merge", "merge_until": "fits", "page_share": 1.0, "question_tokens": 0,
        "least_words": 1,
    }  # fmt: skip
    return MergedPages(**{**own, **settings})


def pages(num: int) -> Any:
    return book([PAGE] * num, gists=["a gist of five words"] * num)


def ends(made: Sequence[Page]) -> list[tuple[tuple[int, ...], str | None]]:
    return [(page.merged_from, page.chosen_by) for page in made]


def test_what_fits_to_the_word_stays_as_it_is_and_nothing_is_asked() -> None:
    engine = never()
    engine.context_tokens = context(4, 5)
    made, calls = run(stage(), pages(4), engine)
    assert ends(made) == [((n,), "model") for n in range(4)]
    assert calls == ()


def test_one_word_less_and_pages_are_merged() -> None:
    """A merge leaves out a tag and a gist, 7 words, and the raw page has 10 more: it never fits. A
    page of 40 words would have no room even alone."""
    engine = Listener(lambda _: "no", context(4, 5) - 1)
    made, calls = run(stage(merge_until="end"), pages(4), engine)
    assert ends(made) == [((0, 1, 2), "rule"), ((3,), "end")]
    assert [call.page_index for call in calls] == [1, 2]


def test_it_stops_as_soon_as_the_memory_would_fit() -> None:
    """Long gists: each merge leaves one out, which is more than the page that comes in addition."""
    rows = book([PAGE] * 6, gists=["word " * 30] * 6)
    engine = in_turn("no", "no", context_tokens=context(4, 30, 30))
    made, _ = run(stage(), rows, engine)
    assert ends(made) == [
        ((0, 1, 2), "rule"), ((3,), "rule"), ((4,), "rule"), ((5,), "end"),
    ]  # fmt: skip
    engine = in_turn(*["no"] * 5, context_tokens=context(4, 30, 30))
    made, _ = run(stage(merge_until="end"), rows, engine)
    assert ends(made) == [((0, 1, 2, 3, 4, 5), "end")]


@pytest.mark.parametrize(
    ("reply", "settings", "merged", "reason"),
    [
        ("No.", {}, True, ""),
        ("yes", {}, False, "model"),
        ("not sure", {}, True, ""),
        ("Not sure", {"not_sure": "keep"}, False, "model"),
        ("Perhaps.", {}, False, "fallback"),
        ("", {}, False, "fallback"),
    ],
)
def test_what_a_reply_leads_to(
    reply: str, settings: dict[str, Any], merged: bool, reason: str
) -> None:
    engine = Listener(lambda _: reply, context(1, 5, 20))
    rows = book(
        [PAGE] * 2, gists=["a gist", "a gist of twelve words or so, longer than the page is"]
    )
    made, _ = run(stage(merge_until="end", **settings), rows, engine)
    assert ends(made) == ([((0, 1), "end")] if merged else [((0,), reason), ((1,), "end")])


def test_the_model_sees_the_page_as_it_is_by_then_and_the_next() -> None:
    texts = ["First words.\n\n", "Second words.\n\n", "Third words.\n\n"]
    engine = Listener(lambda _: "no", context(1, 0, 6))
    run(stage(merge_until="end"), book(texts, gists=["x"] * 3), engine)
    first, second = (prompt.split("The second page:\n\n") for prompt in engine.prompts())
    assert "First words." in first[0] and first[1].startswith("Second words.")
    assert "First words.\n\nSecond words." in second[0] and second[1].startswith("Third words.")


def test_a_page_takes_no_more_than_its_share() -> None:
    """Two pages of ten words and the words of the prompt that shortens them, no third."""
    engine = Listener(lambda _: "no", context(4, 5) - 1)
    share = (SHOWN + 20.5) / engine.context_tokens
    made, calls = run(stage(merge_until="end", page_share=share), pages(4), engine)
    assert ends(made) == [((0, 1), "rule"), ((2, 3), "end")]
    assert [call.page_index for call in calls] == [1, 3], "what cannot be is not asked"


def test_no_page_goes_past_a_form_feed() -> None:
    rows = book([PAGE, "\f" + PAGE], gists=["a gist", "a gist"])
    made, calls = run(stage(), rows, Listener(lambda _: "no", context(2, 2) - 1))
    assert ends(made) == [((0,), "rule"), ((1,), "end")]
    assert calls == ()


def test_where_there_are_too_many_chapters_neighbours_are_merged_unasked() -> None:
    """Sixty pages, each a chapter: their tags alone are too much."""
    engine = Listener(lambda _: "yes", context(20, 1, 40))
    share = (SHOWN + 40.5) / engine.context_tokens
    made, calls = run(stage(page_share=share), pages(60), engine)
    assert len(calls) == 59
    assert len(made) <= 20 and max(len(page.merged_from) for page in made) == 4
    assert [n for page in made for n in page.merged_from] == list(range(60))


@settings(max_examples=60, deadline=None)
@given(
    verdicts=st.lists(st.sampled_from(["yes", "no", "not sure", "?"]), min_size=30, max_size=30),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    room=st.integers(0, 900),
)
def test_whatever_is_replied_pages_tile_the_text(
    verdicts: list[str], lengths: list[int], room: int
) -> None:
    texts = ["word " * length for length in lengths]
    left = list(verdicts)
    engine = Listener(lambda _: left.pop(), NOTHING + REPLIES + room)
    made, calls = run(stage(page_share=0.5), book(texts, gists=["a gist"] * len(texts)), engine)
    assert "".join(page.text for page in made) == "".join(texts)
    assert [n for page in made for n in page.merged_from] == list(range(len(texts)))
    assert [page.page_index for page in made] == list(range(len(made)))
    assert [page.num_words for page in made] == [len(page.text.split()) for page in made]
    assert len(calls) < len(texts)


def test_copied_pages_are_the_same_pages() -> None:
    made, calls = run(CopiedPages(purpose="other gists"), pages(2), never())
    assert [(p.page_index, p.text, p.merged_from) for p in made] == [
        (0, PAGE, (0,)),
        (1, PAGE, (1,)),
    ]
    assert calls == ()
