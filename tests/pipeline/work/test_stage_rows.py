"""What a stage that says nothing of failures and checks does: a row per input, and none amiss."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.errors import AccountingError
from pipeline.core.rows import Document, Question, Record, UnitRows
from pipeline.work.stage import Stage
from stages.index.gist_pages import GistPages
from stages.retrieve.look_up import NoLookUp
from stages.score.score import ScoreAnswers
from stages.tables.answers import Score
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page

OF_PAGES, OF_TURNS = GistPages(page_breaks=False), NoLookUp()
OF_METRICS = ScoreAnswers(metrics=())
DOCUMENT = Document(document_id="d")
QUESTIONS = tuple(Question(document_id="d", question_id=name) for name in "ab")
PAGES = tuple(Page.about(DOCUMENT, page_index=n) for n in range(3))
GISTS = tuple(Gist.about(page) for page in PAGES)
ROWS = UnitRows(document=DOCUMENT, questions=QUESTIONS, tables={Page: PAGES})


def turns(*names: str) -> list[Record]:
    """Each of a question and its number."""
    return [Lookup(document_id="d", question_id=name[0], turn=int(name[1])) for name in names]


def scores(*names: str) -> list[Record]:
    """Each of a question and its metric."""
    return [
        Score(document_id="d", question_id=name[0], metric=name[1], value=1.0) for name in names
    ]


def test_a_failed_unit_has_a_row_for_each_input() -> None:
    pages = OF_PAGES.failed(ROWS, "upstream", "why")
    why: Any = {"problem": "upstream", "detail": "why"}
    assert len(pages) == 3
    assert pages[2] == Gist(document_id="d", page_index=2, gist=None, num_words=0, **why)
    turns = OF_TURNS.failed(ROWS, "timeout", None)
    problems = [(row.question_id, row.problem) for row in turns]
    assert problems == [("a", "timeout"), ("b", "timeout")]


def test_the_rows_of_all_inputs_pass() -> None:
    OF_PAGES.check(ROWS, GISTS)
    OF_TURNS.check(ROWS, turns("a0", "a1", "b0"))
    OF_METRICS.check(ROWS, scores("ax", "aw", "bx"))


@pytest.mark.parametrize(
    ("stage", "made"),
    [
        (OF_PAGES, GISTS[:2]),
        (OF_PAGES, (GISTS[1], GISTS[0], GISTS[2])),
        (OF_PAGES, (*GISTS, GISTS[2])),
        (OF_PAGES, [replace(gist, document_id="e") for gist in GISTS]),
        (OF_TURNS, ()),
        (OF_TURNS, turns("a0", "a0", "b0")),
        (OF_TURNS, turns("a0", "b0", "a1")),
        (OF_TURNS, turns("a0", "b0", "c0")),
        (OF_METRICS, scores("ax", "ax", "bx")),
    ],
)
def test_rows_lost_doubled_or_out_of_order_are_refused(
    stage: Stage, made: Sequence[Record]
) -> None:
    with pytest.raises(AccountingError, match=r"d: .* do not match"):
        stage.check(ROWS, made)
