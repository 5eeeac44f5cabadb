"""The commit of a unit, and the replies that it has before. All of it is for threads: it blocks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pipeline.asking.journal import Journal
from pipeline.asking.reply_log import EarlierCalls, ReplyLog, SharedReplies
from pipeline.core.calls import Call
from pipeline.core.rows import utc_now
from pipeline.store import Shards
from pipeline.work.steps import Step
from pipeline.work.units import Unit, rows_of_questions

Rows = tuple[Any, ...]
NO_LOG = ReplyLog(is_committed=True)  # of a stage that asks nothing


def load_unit(shards: Shards, step: Step, unit: Unit) -> Rows:
    """The committed rows of a unit, of its own questions."""
    rows: Rows = shards.load(step.writes, step.id, unit.unit, unit.attempt)
    return rows_of_questions(rows, unit.inputs) if step.per_question else rows


@dataclass(frozen=True, slots=True)
class UnitCommit:
    """Commits one unit: its calls, then its rows; `started_at`: when it was started (UTC)."""

    shards: Shards
    step: Step
    unit: Unit
    journal: Journal
    started_at: datetime = field(default_factory=utc_now)

    def log(self, shared: Callable[[str], SharedReplies], is_kept: bool) -> ReplyLog:
        """The replies that the unit has already: its committed calls, else its journal's if it
        `is_kept`. `shared`: step_id -> the step's shared replies."""
        committed = self.shards.recorded(self.step.id, self.unit.unit, self.unit.attempt)
        calls = self.journal.read() if is_kept and committed is None else committed
        return ReplyLog(
            calls=calls or (),
            is_committed=committed is not None,
            attempt=self.unit.attempt,
            earlier=self._earlier() if self.unit.attempt > 1 else EarlierCalls(),
            shared=shared(self.step.id),
            keep=self.journal.add if is_kept else None,
        )

    def _earlier(self) -> EarlierCalls:
        """The calls of the previous attempt at the unit, and those of its rows that have a
        problem."""
        before = (self.step.id, self.unit.unit, self.unit.attempt - 1)
        rows = self.shards.load(self.step.writes, *before)
        calls = self.shards.recorded(*before) or ()
        return EarlierCalls(calls, [row for row in rows if row.problem])

    def commit(self, calls: Rows | None, made: Rows) -> Rows | None:
        """Commit the calls (None: they are), then the rows, and delete the journal. Returns the
        committed rows, maybe another worker's; None if another has committed other calls."""
        commit = partial(self.shards.commit, started_at=self.started_at)
        if calls is not None and not commit(Call, self.step, self.unit, calls):
            return None
        is_ours = commit(self.step.writes, self.step, self.unit, made)
        self.journal.delete()
        return made if is_ours else load_unit(self.shards, self.step, self.unit)
