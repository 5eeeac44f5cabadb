"""The base of all look-ups, which choose the pages to read for a question; and no look-up."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pipeline.ask import Ask
from pipeline.errors import Problem
from pipeline.rows import Question, QuestionRow, Record, UnitRows
from pipeline.stage import Stage, refuse_gaps
from pipeline.trace_lines import Line
from stages.index.paginate import Page  # noqa: F401  # `retrieval` is made of its view
from stages.retrieve.rankings import RANKINGS, RETRIEVAL, SELECTED

RANKS_KEPT = 50  # of each turn: the deepest that LongMemEval's metrics of retrieval go
_TRACED = 30  # page indexes of a turn that a trace lists


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was requested but not read, and why."""

    page_index: int
    reason: str  # duplicate, out_of_range, over_maximum, no_room, rejected


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page in a ranking. `score`: what it was ranked by, in the ranking's own unit; null where
    that is nothing (pages drawn at random, a page without an embedding)."""

    page_index: int
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(QuestionRow):
    """One look-up turn of one question. A method without look-ups writes an empty turn 0."""

    table: ClassVar[str] = "lookups"
    key: ClassVar[tuple[str, ...]] = ("question_id", "turn")
    drawn: ClassVar[bool] = True
    views: ClassVar[tuple[str, ...]] = (RANKINGS, RETRIEVAL)
    measures: ClassVar[str | None] = SELECTED
    turn: int  # of the question's look-ups, from 0
    query_index: int | None = None  # of the query that was searched for
    requested: tuple[int, ...] = ()  # page indexes in the order of the reply, legal or not
    used: tuple[int, ...] | None = ()  # page indexes in order of importance; null: no reply
    # requested and not read: duplicate, out_of_range, over_maximum, no_room or rejected.
    dropped: tuple[Dropped, ...] = ()
    ranked: tuple[RankedPage, ...] = ()  # best first, to the 50th; empty where a model chose
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)

    def lack(self) -> str | None:
        """Only a turn without a reply: after one that cannot be parsed the gists remain."""
        return f"look_up: {self.problem}" if self.used is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        dropped = [f"{drop['page_index']} ({drop['reason']})" for drop in row["dropped"]]
        parts = [f"asked for {_listed(row['requested'])}", f"read {_listed(row['used'])}"]
        parts += [f"dropped {', '.join(dropped)}"] if dropped else []
        parts += [f"problem {row['problem']}"] if row["problem"] else []
        of = "" if row["query_index"] is None else f" by query {row['query_index']}"
        return [f"look-up {row['turn']}{of}: {', '.join(parts)}"]


def _listed(indexes: Sequence[int] | None) -> str:
    """The page indexes, of very many the first ones."""
    if indexes is None or len(indexes) <= _TRACED:
        return str(indexes)
    first = ", ".join(map(str, indexes[:_TRACED]))
    return f"[{first} and {len(indexes) - _TRACED} more]"


class LookUp(Stage):
    """Base class: writes a row per question and turn, turns counted from 0."""

    name: ClassVar[str] = "look_up"
    writes: ClassVar[type[Record]] = Lookup

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        found = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in found for turn in turns]

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is null where there was no reply."""
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
    """A turn that requests and uses the best `top_k` pages of a ranking; null: all of it."""
    best = tuple(page.page_index for page in ranking[:top_k])
    ranked = tuple(ranking[:RANKS_KEPT])
    return replace(turn_row(question), requested=best, used=best, ranked=ranked)


class NoLookUp(LookUp):
    """For methods without look-ups: an empty turn 0. No calls."""

    kind: ClassVar[str] = "none"
    version: ClassVar[int] = 1
