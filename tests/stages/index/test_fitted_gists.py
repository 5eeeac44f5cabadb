"""Gists of merged pages, and gists shortened again until the memory fits."""

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.rows import UnitRows
from stages.index.gist_pages import FittedGists
from stages.prompts.choose_pages import ParallelLookUp
from stages.tables.pages import Gist, Page
from tests.stages.index.test_merge import REPLIES, context
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    content,
    num_tokens,
    passages,
    run,
)

STAGE = FittedGists(page_breaks=False, question_tokens=0, least_words=2)


def merged(*parts: tuple[int, ...], gists: list[str]) -> UnitRows:
    """Pages of ten words for each page they were made from, and the gists of those."""
    rows = book(["ten words " * 5 * len(own) for own in parts], gists=gists)
    pages = tuple(replace(p, merged_from=own) for p, own in zip(rows[Page], parts, strict=True))
    return replace(rows, tables={**rows.tables, Page: pages})


def target(prompt: str) -> int:
    (words,) = re.findall(r"to (\d+) words at most", prompt)
    return int(words)


def test_a_page_that_was_not_merged_keeps_its_gist() -> None:
    rows = merged((0,), (1, 2), (3,), gists=["zero", "one", "two", "three"])
    made, calls = run(STAGE, rows, always("of both"))
    assert [(g.page_index, g.gist, g.num_words) for g in made] == [
        (0, "zero", 1), (1, "of both", 2), (2, "three", 1)]  # fmt: skip
    assert [(call.prompt, call.page_index) for call in calls] == [("gist", 1)]


def test_the_oldest_are_shortened_first_and_the_memory_fits_then() -> None:
    """By hand: of the 60 words of three gists beside a raw page there is room for 40; of all 80 so
    for 2/3, and 5% less, 50: 10, 10, 10 and 20."""
    rows = merged((0,), (1,), (2,), (3,), gists=["word " * 20] * 4)
    engine = Listener(lambda r: "w " * target(content(r)), context(4, 0) + 40)
    made, calls = run(STAGE, rows, engine)
    assert [gist.num_words for gist in made] == [10, 10, 10, 20]
    assert [(call.prompt, call.page_index) for call in calls] == [("regist", n) for n in range(3)]
    assert all(gist.problem is None for gist in made)


def test_a_reply_that_is_too_long_is_shortened_once_more_and_then_cut() -> None:
    rows = merged((0,), (1,), gists=["word " * 40, "word " * 40])
    engine = Listener(lambda r: "long " * (target(content(r)) + 3), context(2, 0) + 15)
    made, calls = run(STAGE, rows, engine)
    assert [(call.page_index, call.turn) for call in calls] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    texts = [content(r).split("The notes:\n\n")[1].split() for r in engine.requests]
    assert sorted(own[0] for own in texts) == ["long", "long", "word", "word"]
    assert [gist.problem for gist in made] == ["truncated"] * 2
    assert sum(gist.num_words for gist in made[1:]) <= 15
    assert all(gist.gist and set(gist.gist.split()) == {"long"} for gist in made)


def test_a_sessions_header_stays_before_its_gist() -> None:
    stage = FittedGists(page_breaks=True, question_tokens=0, least_words=1)
    rows = book(["\f[1 May] a b c\n", "d e f\n"], gists=["[1 May] a b c d e f", "[1 May] g h i j"])
    pages = tuple(replace(p, merged_from=(p.page_index,)) for p in rows[Page])
    gists = tuple(replace(g, num_words=g.num_words - 2) for g in rows[Gist])
    rows = replace(rows, tables={Page: pages, Gist: gists})
    engine = Listener(lambda r: "x " * target(content(r)), context(2, 2, 5) + 2)
    made, _ = run(stage, rows, engine)
    assert all((gist.gist or "").startswith("[1 May] x") for gist in made)
    assert not any("1 May" in prompt for prompt in engine.prompts())


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    extra=st.integers(-20, 40),
    room=st.integers(0, 300),
)
def test_whatever_the_replies_the_memory_fits_where_its_tags_do(
    lengths: list[int], extra: int, room: int
) -> None:
    rows = merged(*[(n,) for n in range(len(lengths))], gists=["word " * n for n in lengths])
    engine = Listener(
        lambda r: "w " * max(0, target(content(r)) + extra), context(len(lengths), 0) + room
    )
    made, _ = run(STAGE, rows, engine)
    raw = passages(adding(rows, {Gist: made}), raw=[0])  # all pages have as many words
    assert num_tokens(ParallelLookUp(raw, "", (), 1)) + REPLIES <= engine.context_tokens
