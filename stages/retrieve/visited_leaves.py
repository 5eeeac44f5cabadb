"""The segments that a navigation read, as a look-up (MemWalker section 3)."""

from dataclasses import replace
from typing import ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Record, UnitRows
from stages.retrieve.look_up import LookUp, lost_turn, turn_row
from stages.tables.lookups import Dropped, Lookup
from stages.tables.visits import Visit


class VisitedLeaves(LookUp):
    """One turn per question: the leaves visited are requested, the one that was answered from is
    used, those reverted from are dropped, reason rejected. No calls."""

    kind: ClassVar[str] = "visited"
    version: ClassVar[int] = 1
    reads: ClassVar[tuple[type[Record], ...]] = (Visit,)

    async def turns(self, rows: UnitRows, question: Question, ask: Ask) -> list[Lookup]:
        """Visits -> one turn. Problem: upstream (the navigation got no reply)."""
        visits = rows.of(Visit, question)
        if lost := lost_turn(question, visits):
            return [lost]
        at_leaves = [(v.page_index, v.action) for v in visits if v.page_index is not None]
        rejected = [Dropped(page, "rejected") for page, action in at_leaves if action == "revert"]
        return [
            replace(
                turn_row(question),
                requested=tuple(page for page, _ in at_leaves),
                used=tuple(page for page, action in at_leaves if action == "answer"),
                dropped=tuple(rejected),
            )
        ]
