"""The segments that a navigation read, as a look-up (MemWalker section 3)."""

from dataclasses import replace
from typing import ClassVar

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, Record, UnitRows
from stages.retrieve.look_up import LookUp, turn_row
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
        lacks = [lack for visit in visits if (lack := visit.why_unusable())]
        if lacks:
            lost = replace(turn_row(question), used=None, problem="upstream")
            return [replace(lost, detail=", ".join(lacks))]
        at_leaves = [visit for visit in visits if visit.page_index is not None]
        row = turn_row(question)
        return [
            replace(
                row,
                requested=tuple(v.page_index for v in at_leaves if v.page_index is not None),
                used=tuple(
                    v.page_index
                    for v in at_leaves
                    if v.action == "answer" and v.page_index is not None
                ),
                dropped=tuple(
                    Dropped(v.page_index, "rejected")
                    for v in at_leaves
                    if v.action == "revert" and v.page_index is not None
                ),
            )
        ]
