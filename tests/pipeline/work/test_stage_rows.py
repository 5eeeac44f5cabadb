"""What a stage that says nothing of failures and checks does: a row per input, and none amiss."""

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from pipeline.core.errors import AccountingError
from pipeline.core.rows import Document, Question, Record, UnitRows
from pipeline.work.stage import Stage
from stages.tables.answers import Score
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page


class _Stage(Stage, ABC):
    async def run(self, rows: UnitRows, ask: Any) -> Sequence[Record]:
        return ()


class OfPages(_Stage, ABC):
    reads: ClassVar[tuple[type[Record], ...]] = (Page,)
    writes: ClassVar[type[Record]] = Gist


class OfTurns(_Stage, ABC):
    writes: ClassVar[type[Record]] = Lookup


class OfMetrics(_Stage, ABC):
    writes: ClassVar[type[Record]] = Score


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
    pages = OfPages().failed(ROWS, "upstream", "why")
    why: Any = {"problem": "upstream", "detail": "why"}
    assert len(pages) == 3
    assert pages[2] == Gist(document_id="d", page_index=2, gist=None, num_words=0, **why)
    turns = OfTurns().failed(ROWS, "timeout", None)
    problems = [(getattr(row, "question_id", ""), row.problem) for row in turns]
    assert problems == [("a", "timeout"), ("b", "timeout")]


def test_the_rows_of_all_inputs_pass() -> None:
    OfPages().check(ROWS, GISTS)
    OfTurns().check(ROWS, turns("a0", "a1", "b0"))
    OfMetrics().check(ROWS, scores("ax", "aw", "bx"))


@pytest.mark.parametrize(
    ("stage", "made"),
    [
        (OfPages(), GISTS[:2]),
        (OfPages(), (GISTS[1], GISTS[0], GISTS[2])),
        (OfPages(), (*GISTS, GISTS[2])),
        (OfPages(), [replace(gist, document_id="e") for gist in GISTS]),
        (OfTurns(), ()),
        (OfTurns(), turns("a0", "a0", "b0")),
        (OfTurns(), turns("a0", "b0", "a1")),
        (OfTurns(), turns("a0", "b0", "c0")),
        (OfMetrics(), scores("ax", "ax", "bx")),
    ],
)
def test_rows_lost_doubled_or_out_of_order_are_refused(
    stage: Stage, made: Sequence[Record]
) -> None:
    with pytest.raises(AccountingError, match=r"d: .* do not match"):
        stage.check(ROWS, made)
