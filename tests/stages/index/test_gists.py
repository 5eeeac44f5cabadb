"""Gists, one a page, whatever becomes of a reply; pages merged until the memory fits, and gists of
merged pages, shortened again until it does. Engines count words, so that what fits is worked out by
hand from the templates' own words."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.core.rows import UnitRows
from stages.index.gist_pages import CopiedPages, FittedGists, GistPages, MergedPages
from stages.prompts.answer import Passage
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import PageGist
from stages.tables.pages import Gist, Page
from tests.support.command import WHOLE, refused, sql, succeed
from tests.support.own_methods import methods
from tests.support.reading import (
    Listener,
    adding,
    always,
    book,
    content,
    deadline,
    in_turn,
    never,
    num_tokens,
    passages,
    run,
    scripted,
)
from tests.support.texts.loading import loaded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

CUT, LOST = {"finish_reason": "length"}, {"finish_reason": "abort"}
# A page, what is replied to it, and of its row gist, words, problem and the share it copies.
ONE_BY_ONE: list[tuple[str, dict[str, Any], str | None, int, str | None, float | None]] = [
    ("The old bell rings. Ding.\n", {"reply": "\n the bell, it RINGS. \n"},
     "the bell, it RINGS.", 4, None, 2 / 5),  # The and rings.
    ("Nobody admits it.\n\n", {"reply": "He says no and", **CUT},
     "He says no and", 4, "truncated", 0.0),
    ("Dawn came.\n", {"reply": " \n"}, "", 0, "unparseable", 0.0),
    ("Dusk fell.\n", {"reply": "", **CUT}, "", 0, "truncated", 0.0),
    ("It was wind.\n", {"reply": "half a", **LOST}, None, 0, "engine_failed", None),
    ("The sexton shrugs.\n", {"hang": True}, None, 0, "timeout", None),
    ("long " * 400, {}, None, 0, "context_overflow", None),
    (" \n\n", {}, None, 0, "empty_input", None),
]  # fmt: skip


def test_every_page_is_shortened_by_itself_whatever_becomes_of_a_reply(tmp_path: Path) -> None:
    pages, replies, *_ = zip(*ONE_BY_ONE, strict=True)
    rules = [{"match": f"The page:\n\n{page.strip()}\n\nOne paragraph", **reply}
             for page, reply in zip(pages, replies, strict=True) if reply]  # fmt: skip
    engine = scripted(tmp_path, *rules, context_tokens=300)
    gists, calls = run(GistPages(page_breaks=False), book(pages), engine,
                       deadline_seconds=deadline(*rules), reply_tokens={"gist": 64})  # fmt: skip
    assert [(g.gist, g.num_words, g.problem, g.copied) for g in gists] == [
        tuple(expected) for _, _, *expected in ONE_BY_ONE
    ]
    assert [(call.page_index, call.prompt, call.reply) for call in calls] == [
        (n, "gist", rule.get("reply", "")) for n, rule in enumerate(rules)
    ]


PAGE = "one two three four five six seven eight nine ten\n\n"  # ten words
REPLIES = 128 + 512 + 7  # the budgets of a look-up and an answer, and question_tokens
NOTHING = num_tokens(ParallelLookUp((), "", (), 1))
INTRO = num_tokens(ParallelLookUp((Passage("page", 0, "x"),), "", (), 1)) - NOTHING - 3
TAG = 2  # words of a page's tag: <Page 0>
SHOWN = num_tokens(PageGist(page="x")) - 1
FITTED = FittedGists(page_breaks=False, question_tokens=7, least_words=2)


def context(num_pages: int, gist_words: int, page_words: int = 10) -> int:
    """The context that holds so many pages, one of them raw and the others gists, to the word."""
    memory = num_pages * TAG + (num_pages - 1) * gist_words + page_words
    return NOTHING + INTRO + memory + REPLIES


def stage(**settings: Any) -> MergedPages:
    usual = {"not_sure": "merge", "merge_until": "fits", "page_share": 1.0, "question_tokens": 7,
             "least_words": 1}  # fmt: skip
    return MergedPages.model_validate({**usual, **settings})


def equal_pages(num: int) -> UnitRows:
    return book([PAGE] * num, gists=["a gist of five words"] * num)


def ends(pages: Sequence[Page]) -> list[tuple[tuple[int, ...], str | None]]:
    return [(page.merged_from, page.chosen_by) for page in pages]


def test_what_fits_to_the_word_stays_and_with_one_word_less_pages_are_merged() -> None:
    """A merge leaves out a tag and a gist, 7 words, and the raw page has 10 more: it never fits. A
    page of 40 words would have no room even alone."""
    engine = in_turn(context_tokens=context(4, 5))  # it must not be asked
    pages, calls = run(stage(), equal_pages(4), engine)
    assert (ends(pages), calls) == ([((n,), "model") for n in range(4)], ())
    assert run(CopiedPages(purpose="other gists"), equal_pages(4), never()) == (pages, ())
    engine = always("no", context(4, 5) - 1)
    pages, calls = run(stage(merge_until="end"), equal_pages(4), engine)
    assert ends(pages) == [((0, 1, 2), "rule"), ((3,), "end")]
    assert [call.page_index for call in calls] == [1, 2]


def test_it_stops_as_soon_as_the_memory_would_fit() -> None:
    """Long gists: each merge leaves one out, which is more than the page that comes in addition."""
    rows = book([PAGE] * 6, gists=["word " * 30] * 6)
    engine = in_turn("no", "no", context_tokens=context(4, 30, 30))
    pages, _ = run(stage(), rows, engine)
    assert ends(pages) == [((0, 1, 2), "rule"), ((3,), "rule"), ((4,), "rule"), ((5,), "end")]
    engine = in_turn(*["no"] * 5, context_tokens=context(4, 30, 30))
    pages, _ = run(stage(merge_until="end"), rows, engine)
    assert ends(pages) == [((0, 1, 2, 3, 4, 5), "end")]


@pytest.mark.parametrize(
    ("reply", "not_sure", "chosen_by"),
    [
        ("No.", "merge", None), ("yes", "merge", "model"), ("not sure", "merge", None),
        ("Not sure", "keep", "model"), ("Perhaps.", "merge", "fallback"),
    ],
)  # fmt: skip
def test_what_a_reply_leads_to(reply: str, not_sure: str, chosen_by: str | None) -> None:
    rows = book([PAGE] * 2, gists=["a gist", "a gist of twelve words or so, longer than the page"])
    limited = stage(merge_until="end", not_sure=not_sure)
    pages, _ = run(limited, rows, always(reply, context(1, 5, 20)))
    assert ends(pages) == ([((0,), chosen_by), ((1,), "end")] if chosen_by else [((0, 1), "end")])


def test_no_page_goes_past_a_form_feed() -> None:
    rows = book([PAGE, "\f" + PAGE], gists=["word " * 30] * 2)
    pages, _ = run(stage(), rows, in_turn(context_tokens=context(2, 30) - 1))  # it is not asked
    assert ends(pages) == [((0,), "rule"), ((1,), "end")]


def test_where_there_are_too_many_chapters_neighbours_are_merged_unasked() -> None:
    engine = always("yes", context(20, 1, 40))
    share = (SHOWN + 40.5) / engine.context_tokens
    pages, calls = run(stage(page_share=share), equal_pages(60), engine)
    assert len(calls) == 59
    assert len(pages) <= 20 and max(len(page.merged_from) for page in pages) == 4
    assert [n for page in pages for n in page.merged_from] == list(range(60))


def merged_pages(*parts: tuple[int, ...], gists: list[str]) -> UnitRows:
    """Pages of ten words for each page they were made from, and the gists of those."""
    rows = book(["ten words " * 5 * len(part) for part in parts], gists=gists)
    pages = zip(rows[Page], parts, strict=True)
    return adding(rows, {Page: [replace(page, merged_from=part) for page, part in pages]})


def target(prompt: str) -> int:
    (words,) = re.findall(r"to (\d+) words at most", prompt)
    return int(words)


def test_a_page_that_was_not_merged_keeps_its_gist() -> None:
    rows = merged_pages((0,), (1, 2), (3,), gists=["zero", "one", "two", "three"])
    gists, calls = run(FITTED, rows, always("of both"))
    assert [(g.page_index, g.gist, g.num_words) for g in gists] == [
        (0, "zero", 1), (1, "of both", 2), (2, "three", 1)]  # fmt: skip
    assert [(call.prompt, call.page_index) for call in calls] == [("gist", 1)]


def test_the_oldest_are_shortened_first_and_the_memory_fits_then() -> None:
    """By hand: of the 60 words of three gists beside a raw page there is room for 40; of all 80 so
    for 2/3, and 5% less, 50: 10, 10, 10 and 20."""
    rows = merged_pages((0,), (1,), (2,), (3,), gists=["word " * 20] * 4)
    engine = Listener(lambda r: "w " * target(content(r)), context(4, 0) + 40)
    gists, calls = run(FITTED, rows, engine)
    assert [gist.num_words for gist in gists] == [10, 10, 10, 20]
    assert [(call.prompt, call.page_index) for call in calls] == [("regist", n) for n in range(3)]
    assert all(gist.problem is None for gist in gists)


def test_a_reply_that_is_too_long_is_shortened_once_more_and_then_cut() -> None:
    rows = merged_pages((0,), (1,), gists=["word " * 40, "word " * 40])
    engine = Listener(lambda r: "long " * (target(content(r)) + 3), context(2, 0) + 15)
    gists, calls = run(FITTED, rows, engine)
    assert [(call.page_index, call.turn) for call in calls] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    texts = [content(r).split("The notes:\n\n")[1].split() for r in engine.requests]
    assert sorted(words[0] for words in texts) == ["long", "long", "word", "word"]
    assert [gist.problem for gist in gists] == ["truncated"] * 2
    assert sum(gist.num_words for gist in gists[1:]) <= 15
    assert all(gist.gist and set(gist.gist.split()) == {"long"} for gist in gists)


def test_a_sessions_header_stays_before_its_gist() -> None:
    stage = FittedGists(page_breaks=True, question_tokens=7, least_words=1)
    rows = book(["\f[1 May] a b c\n", "d e f\n"], gists=["[1 May] a b c d e f", "[1 May] g h i j"])
    pages = [replace(page, merged_from=(page.page_index,)) for page in rows[Page]]
    before = [replace(gist, num_words=gist.num_words - 2) for gist in rows[Gist]]
    rows = adding(rows, {Page: pages, Gist: before})
    engine = Listener(lambda r: "x " * target(content(r)), context(2, 2, 5) + 2)
    gists, _ = run(stage, rows, engine)
    assert all(gist.gist.startswith("[1 May] x") for gist in gists)
    assert not any("1 May" in prompt for prompt in engine.prompts())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(-20, 40),
       st.integers(0, 300))  # fmt: skip
@example(lengths=[30, 30], extra=-20, room=10)  # nothing is replied
def test_whatever_the_replies_the_memory_fits_where_its_tags_do(
    lengths: list[int], extra: int, room: int
) -> None:
    rows = merged_pages(*[(n,) for n in range(len(lengths))], gists=["word " * n for n in lengths])
    engine = Listener(
        lambda r: "w " * max(0, target(content(r)) + extra), context(len(lengths), 0) + room
    )
    gists, _ = run(FITTED, rows, engine)
    raw = passages(adding(rows, {Gist: gists}), raw=[0])  # all pages have as many words
    assert num_tokens(ParallelLookUp(raw, "", (), 1)) + REPLIES <= engine.context_tokens


METHODS = "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=2),bm25(top_k=4)"
BOTH = """select memory, count(*) as pages, sum(num_words)::bigint as words
    from gists group by memory"""


@pytest.mark.slow
def test_a_book_of_300000_words_fits_8192_tokens(tmp_path: Path) -> None:
    """The seven real books in a row are one document, with some questions."""
    stories = loaded(WHOLE / "narrativeqa", "narrativeqa")
    text = "\n\n".join(item.document.text.strip() for item in stories)
    assert len(text.split()) > 300_000
    asked = [
        {"document_id": "long", "question_id": f"q{n}", "question": f"Who is {name}?",
         "references": ["a man"]}
        for n, name in enumerate(("the captain", "the vicar", "her brother", "the old servant"))
    ]  # fmt: skip
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder, [{"document_id": "long", "text": text}], asked)
    succeed("run", "corpus=tables", f"corpus.path={folder}", "family=narrativeqa_gutenberg",
            "rater=none", "engine.context_tokens=8192", METHODS, f"warehouse={tmp_path}", "run=r",
            "memory=fitted")  # fmt: skip
    problems = sql(tmp_path, "select problem, count(*) as n from answers group by 1")
    assert problems == [{"problem": None, "n": 16}]
    found = {row["memory"]: row for row in sql(tmp_path, BOTH)}
    before, after = found.pop("shared"), found.pop("paginate(kind=merged)")
    assert found == {}
    assert after["pages"] < before["pages"]
    assert after["words"] < 2_500 < 8_192 < before["words"]
    (longest,) = sql(tmp_path, """
        select max(prompt_tokens + case stage when 'look_up' then 128 else 512 end) as most
        from calls where stage in ('look_up', 'answer')""")  # fmt: skip
    assert longest["most"] <= 8192


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    folder = tmp_path_factory.mktemp("small")
    write(folder, [document(1), document(2)], [question(1, of=1), question(2, of=2)])
    return ("corpus=tables", f"corpus.path={folder}", "rater=none")


@pytest.mark.slow
def test_gists_for_a_task_are_a_memory_of_their_own(tmp_path: Path, small: Sequence[str]) -> None:
    tasks = ("Find the mills.", "Count the pages.")
    conditional = [f'readagent_p_conditional(task="{task}",max_pages=1)' for task in tasks]
    words = (*small, *UNIFORM, f"warehouse={tmp_path}", "run=r")
    succeed("run", *words, f"methods=readagent_p(max_pages=1),{','.join(conditional)}")
    rows: list[dict[str, Any]] = sql(
        tmp_path, "select memory, prompt, count(*) as n from calls "
        "join steps using (step_id) where calls.stage = 'gist' group by all",
    )  # fmt: skip
    assert {(row["memory"], row["prompt"]): row["n"] for row in rows} == {
        ("shared", "gist"): 6,
        **{(f"paginate(kind=copied,purpose={task})", "gist_for_task"): 6 for task in tasks},
    }
    joined = "select count(*) as n from gists join pages using (memory, document_id, page_index)"
    assert sql(tmp_path, joined) == [{"n": 18}]


def test_a_second_step_for_one_memorys_gists_is_refused(
    tmp_path: Path, small: Sequence[str]
) -> None:
    """Its rows would double every join."""
    text = (
        "arguments: {}\nstages:\n  gist: {kind: conditional, task: Find it}\n"
        "  look_up: {kind: none}\n  answer: {kind: memory}\n"
    )
    own = methods(tmp_path, twice=text)
    line = refused("run", *small, own, "methods=gist_only,twice", f"warehouse={tmp_path}")
    assert "twice.yaml: gist: gists of the memory shared are made already" in line
    assert "paginate (kind copied)" in line
