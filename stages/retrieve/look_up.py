"""The base of all look-ups, which choose the pages to read for a question; and no look-up."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.errors import Problem
from pipeline.core.rows import Question, Record, UnitRows
from pipeline.work.stage import Stage, refuse_gaps
from stages.tables.lookups import Lookup, RankedPage

RANKS_KEPT = 50  # of each turn: the deepest that LongMemEval's metrics of retrieval go


class LookUp(Stage):
    """Base class: writes a row per question and turn, turns counted from 0."""

    name: ClassVar[str] = "look_up"
    writes: ClassVar[type[Record]] = Lookup

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        found = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in found for turn in turns]

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is None where there was no reply."""
        return [turn_row(question)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Lookup]:
        return [
            replace(turn_row(question), used=None, problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has turns, numbered from 0 without a gap."""
        refuse_gaps(rows, made, "turn")


def used_pages(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up read, in order of importance."""
    return [index for turn in rows.of(Lookup, question) for index in turn.used or ()]


def turn_row(question: Question, turn: int = 0) -> Lookup:
    """A turn that requests nothing and uses nothing."""
    return Lookup(document_id=question.document_id, question_id=question.question_id, turn=turn)


def ranked_turn(question: Question, ranking: Sequence[RankedPage], top_k: int | None) -> Lookup:
    """A turn that requests and uses the best `top_k` pages of a ranking; None: all of it."""
    best = tuple(page.page_index for page in ranking[:top_k])
    ranked = tuple(ranking[:RANKS_KEPT])
    return replace(turn_row(question), requested=best, used=best, ranked=ranked)


class NoLookUp(LookUp):
    """For methods without look-ups: an empty turn 0. No calls."""

    kind: ClassVar[str] = "none"
    version: ClassVar[int] = 1
