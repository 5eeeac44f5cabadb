"""The rows of one unit: loaded, or made by its stage and committed with the calls for them."""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

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
from pipeline.work.class_checks import unmatched_rows, wrong_rows
from pipeline.work.stage import Stage
from pipeline.work.steps import Step
from pipeline.work.units import Unit

Rows = tuple[Any, ...]


def load_rows(shards: Shards, step: Step, unit: Unit) -> Rows:
    """The committed rows of a unit, of its own questions. It blocks, as the functions below do."""
    rows: Rows = shards.load(step.writes, step.id, unit.unit, unit.attempt)
    if not step.per_question:
        return rows
    return tuple(row for row in rows if row.question_id in unit.inputs)


def replies_of(
    shards: Shards, step: Step, unit: Unit, shared: SharedReplies, journal: Journal | None
) -> Replies:
    """The replies that a unit has: its committed calls, or else its journal's; for a further
    attempt, also the calls of the previous one and its rows with a problem."""
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
    rows, maybe another worker's; None if another has committed other calls."""
    commit = partial(shards.commit, started_at=started_at)
    if calls is not None and not commit(Call, step, unit, calls):
        return None
    return rows if commit(step.writes, step, unit, rows) else load_rows(shards, step, unit)


class _Failure(NamedTuple):
    problem: Problem
    detail: str


async def stage_rows(stage: Stage, rows: UnitRows, ask: Ask) -> Rows:
    """The stage's rows; if an input is unusable, the stage raises or its rows are wrong, a row with
    a problem per input."""
    made = await _tried(_checked(stage, rows, ask))
    if isinstance(made, _Failure):
        made = await _tried(_failed(stage, rows, made))
    if isinstance(made, _Failure):  # a plugin may define `failed`, too
        made = Stage.failed(stage, rows, *made)
    return tuple(made)


async def _checked(stage: Stage, rows: UnitRows, ask: Ask) -> Sequence[Record] | _Failure:
    if reason := stage.why_unusable(rows):
        return _Failure("upstream", reason)
    made = await stage.run(rows, ask)
    why = wrong_rows(stage, rows, made) or unmatched_rows(stage, rows, made)
    return _Failure("unit_failed", why) if why else made


async def _failed(stage: Stage, rows: UnitRows, why: _Failure) -> Sequence[Record] | _Failure:
    made = stage.failed(rows, *why)
    if wrong := wrong_rows(stage, rows, made):
        return _Failure("unit_failed", f"{wrong} (from its `failed`, after: {why.detail})")
    return made


async def _tried(making: Awaitable[Sequence[Record] | _Failure]) -> Sequence[Record] | _Failure:
    with contained(EngineError, OutageError, AccountingError, StorageError) as raised:
        return await making
    return _Failure("unit_failed", raised.trace())
