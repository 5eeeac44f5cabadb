"""The base of all look-ups, which choose the pages to read for a question; and no look-up."""

import asyncio
from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, QuestionRow, Record, UnitRows
from pipeline.work.stage import Stage
from stages.tables.lookups import Lookup, RankedPage

RANKS_KEPT = 50  # of each turn: the deepest that LongMemEval's metrics of retrieval go


class LookUp(Stage, ABC):
    """Base class: writes a row per question and turn, turns counted from 0."""

    name = "look_up"
    writes = Lookup

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        found = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in found for turn in turns]

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is None where there was no reply."""
        return [turn_row(question)]

    def empty(self, rows: UnitRows, about: Record) -> Lookup:
        return Lookup.about(about, used=None)


def used_pages(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up read, in order of importance."""
    return [index for turn in rows.of(Lookup, question) for index in turn.used or ()]


def by_importance(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up read, in an order that favours no turn: the page
    that each turn requested first, then the second of each, and so on."""
    turns = rows.of(Lookup, question)
    used = {*used_pages(rows, question)}
    places = zip_longest(*(turn.requested for turn in turns))
    return list(dict.fromkeys(page for place in places for page in place if page in used))


def turn_row(question: Question, turn: int = 0) -> Lookup:
    """A turn that requests nothing and uses nothing."""
    return Lookup.about(question, turn=turn)


def lost_turn(question: Question, rests_on: Sequence[QuestionRow]) -> Lookup | None:
    """The only turn of a question of which a row that it rests on failed; None where none did."""
    if lacks := [lack for row in rests_on if (lack := row.why_unusable())]:
        detail = ", ".join(lacks)
        return Lookup.about(question, used=None, problem="upstream", detail=detail)
    return None


def ranked_turn(
    question: Question,
    ranking: Sequence[RankedPage],
    top_k: int | None,
    ranks_kept: int = RANKS_KEPT,
) -> Lookup:
    """A turn that requests and uses the best `top_k` pages of a ranking; None: all of it."""
    best = tuple(page.page_index for page in ranking[:top_k])
    ranked = tuple(ranking[:ranks_kept])
    return replace(turn_row(question), requested=best, used=best, ranked=ranked)


class NoLookUp(LookUp):
    """For methods without look-ups: an empty turn 0. No calls."""

    kind = "none"
    version = 1
