"""Look-up without a model: BM25, random and oracle pages, and who may see gold."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import pytest

from pipeline.core.rows import Question, Span, UnitRows
from pipeline.work.stage import GOLD, STAGES
from stages.gathered.gathered_pages import GivenGists, PaginateGiven
from stages.judge.rate import RateAnswers, RateByType
from stages.retrieve.look_up import BM25, LatestPages, OraclePages, RandomPages
from stages.score.score import ScoreAnswers
from stages.tables.lookups import Lookup
from stages.tables.pages import Page
from tests.support.reading import book, looked_up, never, question, run

PAGES = ["The bell rang. ", "A candle burned. ", "Bell, bell and book! ", "Smoke rose. "]


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(("best", "wrong"), [([1, 4], 4), ([1, -1], -1), ([2, 1, 2], 2)])
def test_a_ranking_of_pages_that_are_not_there_or_there_twice(best: list[int], wrong: int) -> None:
    class Elsewhere(RandomPages):
        """Looks up what there is not."""

        kind = "elsewhere"
        version = 1

        def best(self, pages: Sequence[Page], question: Question) -> list[int]:
            return best

    rows = book(PAGES, questions=[question()])
    told = f"test_retrieve.py: Elsewhere.best returned {wrong}, which is no page"
    with pytest.raises(ValueError, match=re.escape(told)):
        run(Elsewhere(top_k=1, seed=0, repeat=0), rows, never())


def look_up(stage: BM25 | RandomPages | OraclePages, rows: UnitRows) -> list[Lookup]:
    """Its rows without their rankings, which begin with what is requested."""
    made, calls = run(stage, rows, never())
    assert calls == ()
    for row in made:
        order = [page.page_index for page in row.ranked]
        assert order[: len(row.requested)] == list(row.requested[:50])
        assert len(order) <= min(50, len(rows[Page]))
    return [replace(row, ranked=()) for row in made]


@pytest.mark.parametrize(
    ("bm25", "text", "pages"),
    [
        ("plus_on_stems", "Who heard the bells?", (2, 0)),  # twice in page 2
        ("plus_on_stems", "the of and", (0, 1)),  # no terms: all tie
        ("plus_on_stems", "smoke or candle", (1, 3)),  # equal pages
        ("okapi_on_words", "What burned, a CANDLE", (1, 0)),  # `burned.` is another word
        ("okapi_on_words", "bells?", (0, 1)),
    ],
)
def test_bm25_best_first_ties_to_the_lower_page(
    bm25: Any, text: str, pages: tuple[int, ...]
) -> None:
    rows = book(PAGES, questions=[question(text=text)])
    assert look_up(BM25(top_k=2, bm25=bm25), rows) == [looked_up(*pages)]


@pytest.mark.parametrize(
    ("num_pages", "top_k", "bm25", "oracle"),
    [(2, 9, (1, 0), (0, 1)), (4, None, (1, 0, 2, 3), (0, 1)), (0, 2, (), None)],
)
def test_all_pages_where_there_are_no_more_or_no_number_is_set(
    num_pages: int, top_k: int | None, bm25: tuple[int, ...], oracle: tuple[int, ...] | None
) -> None:
    asked = question(text="candle", evidence=(Span(0, 20),))
    rows = book(PAGES[:num_pages], questions=[asked])
    assert look_up(BM25(top_k=top_k, bm25="plus_on_stems"), rows) == [looked_up(*bm25)]
    if oracle is not None:
        assert look_up(OraclePages(top_k=top_k), rows) == [looked_up(*oracle)]
    (latest,), _ = run(LatestPages(top_k=top_k), rows, never())
    assert latest.used == (*reversed(range(num_pages)),)
    okapi = BM25(top_k=top_k, bm25="okapi_on_words")
    for stage in (okapi, RandomPages(top_k=top_k, seed=1, repeat=0)):
        (row,) = look_up(stage, rows)
        assert sorted(row.used or ()) == [*range(num_pages)]


def test_bm25_keeps_ranks_and_scores() -> None:
    """Stems: 2 of 4 pages have `bell`. BM25+ with k1 1.5, b 0.75, delta 1 (Lv and Zhai 2011): idf
    log(5 / 2), pages of 2, 2, 3 and 2 stems; what delta gives every page is left out."""
    idf, mean = log(5 / 2), 9 / 4

    def score(times: int, stems: int) -> float:
        return idf * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * stems / mean))

    rows = book(PAGES, questions=[question(text="the bells")])
    (row,), _ = run(BM25(top_k=1, bm25="plus_on_stems"), rows, never())
    assert [page.page_index for page in row.ranked] == [2, 0, 1, 3]
    assert [page.score for page in row.ranked] == pytest.approx([score(2, 3), score(1, 2), 0, 0])


def test_rankings_are_kept_to_depth_50() -> None:
    rows = book(["word "] * 60, questions=[question(evidence=(Span(0, 300),))])
    for stage in (BM25(top_k=1, bm25="plus_on_stems"), RandomPages(top_k=1, seed=0, repeat=0),
                  OraclePages(top_k=1)):  # fmt: skip
        (row,), _ = run(stage, rows, never())
        assert len({page.page_index for page in row.ranked}) == 50


def drawn(seed: int, repeat: int, num_questions: int = 20, top_k: int = 3) -> list[Lookup]:
    rows = book(["word "] * 30, questions=[question(f"q{i}") for i in range(num_questions)])
    return look_up(RandomPages(top_k=top_k, seed=seed, repeat=repeat), rows)


def test_random_pages_are_those_of_seed_question_and_repeat() -> None:
    first = drawn(0, 0)
    assert drawn(0, 0) == first
    assert drawn(0, 0, num_questions=5) == first[:5]  # whoever else is asked
    for other in (drawn(0, 1), drawn(1, 0)):
        assert sum(a.used == b.used for a, b in zip(first, other, strict=True)) <= 2
    assert len({row.used for row in first}) >= 18
    used = [row.used or () for row in drawn(0, 0, num_questions=300)]
    assert all(len(set(pages)) == 3 for pages in used)
    assert {page for pages in used for page in pages} == set(range(30))


@pytest.mark.parametrize(
    "evidence",
    [
        [(0, 3), (25, 60)],
        [(10, 20), (15, 26), (15, 26)],  # overlaps count once
        [(29, 31)],  # a character of page 2, one of page 3: a tie
        [(40, 50), (3, 9), (16, 24)],
    ],
)
def test_oracle_orders_pages_by_their_gold_characters(evidence: list[tuple[int, int]]) -> None:
    pages = ["x" * 15, "x" * 15, "x" * 30, "x" * 6]  # 0-15, 15-30, 30-60, 60-66
    gold = {char for start, end in evidence for char in range(start, end)}
    ends = [(0, 15), (15, 30), (30, 60), (60, 66)]
    counts = [len(gold & set(range(*page))) for page in ends]
    best = sorted((n for n in range(4) if counts[n]), key=lambda n: (-counts[n], n))
    asked = question(evidence=tuple(Span(*span) for span in evidence))
    for top_k in (1, 2, 4):
        made = look_up(OraclePages(top_k=top_k), book(pages, questions=[asked]))
        assert made == [looked_up(*best[:top_k])]


def test_oracle_skips_a_question_without_gold() -> None:
    asked = [question("a", evidence=(Span(16, 20),)), question("b")]
    made = look_up(OraclePages(top_k=2), book(PAGES, questions=asked))
    assert made == [looked_up(1, question_id="a"), looked_up(question_id="b", skipped=True)]


OURS = [stage for stage in STAGES.values() if stage.__module__.startswith("stages.")]


def test_only_oracle_rate_and_score_are_given_gold() -> None:
    """And of documents no stage is given more than its text and its length, but one that reads
    pages and gists of other documents from its metadata."""
    gold = {stage for stage in OURS if set(stage.question_fields) & set(GOLD)}
    assert gold == {OraclePages, RateAnswers, RateByType, ScoreAnswers}
    others = [stage for stage in OURS if stage not in (PaginateGiven, GivenGists)]
    assert {field for stage in others for field in stage.document_fields} == {"text", "num_words"}
    assert len(OURS) > 10
