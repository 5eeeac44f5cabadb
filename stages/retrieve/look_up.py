"""What every look-up is: which pages to read for a question, in turns; and no look-up at all."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pipeline.ask import Ask
from pipeline.errors import Problem
from pipeline.rows import Question, QuestionRow, Record, UnitRows
from pipeline.stage import Stage, refuse_gaps
from pipeline.trace_lines import Line


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was asked for and not read, and why."""

    page_index: int
    reason: str  # duplicate, out_of_range, over_maximum, no_room


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(QuestionRow):
    """One look-up turn of one question. A method that looks nothing up writes turn 0 with none."""

    table: ClassVar[str] = "lookups"
    key: ClassVar[tuple[str, ...]] = ("question_id", "turn")
    turn: int
    requested: tuple[int, ...] = ()  # page indexes, in the order asked for, legal or not
    used: tuple[int, ...] | None = ()  # page indexes in order of importance; null: it failed
    dropped: tuple[Dropped, ...] = ()
    skipped: bool = False  # the method does not apply (oracle_pages without gold evidence)

    def lack(self) -> str | None:
        """A turn that cannot be read leaves the gists; one that was not replied to, nothing."""
        return f"look_up: {self.problem}" if self.used is None else None

    @classmethod
    def trace(cls, row: Mapping[str, Any]) -> Sequence[Line]:
        dropped = [f"{drop['page_index']} ({drop['reason']})" for drop in row["dropped"]]
        parts = [f"asked for {row['requested']}", f"read {row['used']}"]
        parts += [f"dropped {', '.join(dropped)}"] if dropped else []
        parts += [f"problem {row['problem']}"] if row["problem"] else []
        return [f"look-up {row['turn']}: {', '.join(parts)}"]


class LookUp(Stage):
    """The base of every look-up: a question's turns, from 0, are its rows."""

    name: ClassVar[str] = "look_up"
    writes: ClassVar[type[Record]] = Lookup

    async def run(self, rows: UnitRows, ask: Ask) -> list[Lookup]:
        """Questions -> their Lookups, in question order, then by turn. Problems: see `turns`."""
        found = await asyncio.gather(*(self.turns(rows, q, ask) for q in rows.questions))
        return [turn for turns in found for turn in turns]

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """The look-up turns of one question; `used` is null where it failed for good."""
        return [turn_row(question)]

    def failed(self, rows: UnitRows, problem: Problem, detail: str | None) -> list[Lookup]:
        return [
            replace(turn_row(question), used=None, problem=problem, detail=detail)
            for question in rows.questions
        ]

    def check(self, rows: UnitRows, made: Sequence[Record]) -> None:
        """Raise AccountingError unless every question has its turns, from 0, without a gap."""
        refuse_gaps(rows, made, "turn")


def used_pages(rows: UnitRows, question: Question) -> list[int]:
    """The page indexes that a question's look-up read, in order of importance."""
    return [index for turn in rows.of(Lookup, question) for index in turn.used or ()]


def turn_row(question: Question, turn: int = 0) -> Lookup:
    """A turn that asked for nothing and used nothing."""
    return Lookup(document_id=question.document_id, question_id=question.question_id, turn=turn)


class NoLookUp(LookUp):
    """For methods that look nothing up: turn 0, nothing used. No calls."""

    kind: ClassVar[str] = "none"
    version: ClassVar[int] = 1
