"""The rows of one unit: loaded, made by its stage, and committed with the calls for them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pipeline.asking.ask import Ask
from pipeline.asking.replies import Journal, Replies, SharedReplies
from pipeline.core.calls import Call
from pipeline.core.errors import (
    AccountingError,
    EngineError,
    OutageError,
    Problem,
    StorageError,
    contained,
)
from pipeline.core.rows import Record, UnitRows
from pipeline.store import Shards
from pipeline.work.class_checks import wrong_rows
from pipeline.work.stage import Stage
from pipeline.work.units import Step, Unit

Rows = tuple[Any, ...]


def load_rows(shards: Shards, step: Step, unit: Unit) -> Rows:
    """The committed rows of a unit, of its own questions. It blocks."""
    rows: Rows = shards.load(step.writes, step.id, unit.unit, unit.attempt)
    if not step.per_question:
        return rows
    return tuple(row for row in rows if row.question_id in unit.inputs)


def replies_of(
    shards: Shards, step: Step, unit: Unit, shared: SharedReplies, journal: Journal | None
) -> Replies:
    """The replies that a unit has: its committed calls, or else its journal's; for a further
    attempt, also the calls of the previous one and its rows with a problem. It blocks."""
    if not step.prompts:
        return Replies(is_committed=True)
    committed = shards.recorded(step.id, unit.unit, unit.attempt)
    calls = journal.read() if journal and committed is None else committed
    earlier: Sequence[Call] = ()
    problems: Sequence[Record] = ()
    if unit.attempt > 1:
        before = (step.id, unit.unit, unit.attempt - 1)
        earlier = shards.recorded(*before) or ()
        problems = [row for row in shards.load(step.writes, *before) if row.problem]
    return Replies(
        calls=calls or (),
        is_committed=committed is not None,
        attempt=unit.attempt,
        earlier=earlier,
        problems=problems,
        shared=shared,
        journal=journal,
    )


def commit_unit(
    shards: Shards,
    step: Step,
    unit: Unit,
    calls: Sequence[Call] | None,
    rows: Rows,
    started_at: datetime,
) -> Rows | None:
    """Commit the calls (None: they are committed already), then the rows. Returns the committed
    rows, maybe another worker's; None if another has committed other calls. It blocks."""
    commit = shards.commit
    if calls is not None and not commit(Call, step, unit, calls, started_at):
        return None
    is_ours = commit(step.writes, step, unit, rows, started_at)
    return rows if is_ours else load_rows(shards, step, unit)


async def stage_rows(stage: Stage, rows: UnitRows, ask: Ask) -> Rows:
    """The stage's rows; if an input is unusable, the stage raises or its rows are wrong, a row with
    a problem per input."""
    problem: Problem = "unit_failed"
    not_a_row = (EngineError, OutageError, AccountingError, StorageError)
    with contained(*not_a_row) as raised:
        if detail := stage.why_unusable(rows):
            problem = "upstream"
        else:
            made = await stage.run(rows, ask)
            if not (detail := wrong_rows(stage, rows, made)):
                return tuple(made)
    detail = raised.trace() if raised.error else detail
    with contained(*not_a_row) as raised:
        failed = stage.failed(rows, problem, detail)
        if not (wrong := wrong_rows(stage, rows, failed, is_checked=False)):
            return tuple(failed)
        detail = f"{wrong} (from its `failed`, after: {detail})"
    detail = raised.trace() if raised.error else detail
    return tuple(Stage.failed(stage, rows, "unit_failed", detail))  # `failed` may be a plugin's
