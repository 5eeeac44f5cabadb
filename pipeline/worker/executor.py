"""Execute one document's stages in a phase, in dependency order.

A pending unit awaits its upstream rows, which are loaded if committed and else made first.
Independent of Ray and of what stages do.
"""

import asyncio
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from pipeline.asking.ask import Ask
from pipeline.asking.known_replies import EarlierCalls, Journal, Replies, SharedReplies
from pipeline.asking.reader import Reader
from pipeline.core.calls import Call, UsageCounters
from pipeline.core.errors import (
    AccountingError,
    EngineError,
    OutageError,
    Problem,
    StorageError,
    contained,
)
from pipeline.core.rows import Document, Question, Record, UnitRows, utc_now
from pipeline.store import Shards
from pipeline.work.class_checks import unmatched_rows, wrong_rows
from pipeline.work.stage import Stage
from pipeline.work.steps import Step
from pipeline.work.units import Unit, mask_fields
from pipeline.worker.crashes import Attempt
from pipeline.worker.heartbeat import DocumentProgress

Rows = tuple[Any, ...]
_GIVEN_UP = "a worker crashed twice while it executed only this unit"


@dataclass
class Summary(UsageCounters):
    """The result of one document in one phase; all that a worker returns to the driver. Replayed
    and shared calls are not counted, as nothing was sent for them."""

    document_id: str
    worker: str = ""
    asked: dict[str, int] = field(default_factory=dict)  # requests to the engine, by step_id
    seconds: float = 0.0
    words: float = 0.0  # of its work, as planned
    findings: dict[str, str] = field(default_factory=dict)  # of its worker so far; see ReplyWatch


@dataclass(kw_only=True)
class DocumentExecutor:
    """Executes the pending units of one document."""

    shards: Shards
    steps: Mapping[str, Step]
    reader: Reader | None
    units: Sequence[Unit]
    summary: Summary
    rank: int
    attempt: Attempt
    shared: Callable[[str], SharedReplies]  # step_id -> the step's shared replies
    usage: UsageCounters  # of the worker
    progress: DocumentProgress
    is_ending: Callable[[], Awaitable[bool]]  # whether the run is ending: no unit is started then
    tasks: dict[str, asyncio.Task[Rows | None]] = field(default_factory=dict)  # by step_id
    places: dict[str, dict[str, list[int]]] = field(default_factory=dict)  # by step_id

    async def finish(self) -> None:
        """Commit all pending units, unless the run is ending."""
        self.progress.plan(self.units, self.steps)
        pending = {unit.step_id for unit in self.units if not unit.is_done}
        await asyncio.gather(*(self.rows_of(self.steps[step_id]) for step_id in pending))

    def rows_of(self, step: Step) -> asyncio.Task[Rows | None]:
        """The document's rows in a step, made or loaded once for all stages that read them; None if
        the run ended before."""
        if step.id not in self.tasks:
            self.tasks[step.id] = asyncio.create_task(self._rows_of(step))
        return self.tasks[step.id]

    async def _rows_of(self, step: Step) -> Rows | None:
        units = [unit for unit in self.units if unit.step_id == step.id]
        found = await asyncio.gather(*(self._unit(step, unit) for unit in units))
        made = [rows for rows in found if rows is not None]
        return tuple(chain.from_iterable(made)) if len(made) == len(found) else None

    async def _unit(self, step: Step, unit: Unit) -> Rows | None:
        if unit.is_done or step.stage is None:
            return await to_thread(_load, self.shards, step, unit)
        rows = await self._inputs(step, step.stage, unit)
        if rows is None or await self.is_ending():
            return None
        async with self.attempt.unit(f"{step.id}/{unit.unit}"):
            made = await self._commit(step, step.stage, unit, rows)
        num_problems = sum(row.problem is not None for row in made)
        for usage in (self.usage, self.summary):
            usage.committed(len(made), num_problems)
        self.progress.committed(unit)
        return made

    async def _inputs(self, step: Step, stage: Stage, unit: Unit) -> UnitRows | None:
        """The rows that the stage reads for this unit, with only those fields of document and
        questions that it names; None if the run ended before. Raises AccountingError if a question
        is missing."""
        loaded = [s for s in self.steps.values() if s.stage is None]
        loaded = [s for s in loaded if step.per_question or not s.per_question]
        tables: dict[type[Record], Rows] = {}
        for upstream in (*loaded, *(s for s in step.upstream if s.stage is not None)):
            found = await self.rows_of(upstream)
            if found is None:
                return None
            tables[upstream.writes] = self._of_unit(upstream, found, unit)
        (document,) = tables.pop(Document)
        questions = tables.pop(Question, ())
        if {question.question_id for question in questions} != set(unit.inputs):
            raise AccountingError(f"{unit.step_id}/{unit.unit}: some of its questions are missing")
        self.progress.num_words = document.num_words
        return UnitRows(
            document=mask_fields(document, stage.document_fields),
            questions=tuple(mask_fields(one, stage.question_fields) for one in questions),
            tables=tables,
        )

    def _of_unit(self, upstream: Step, rows: Rows, unit: Unit) -> Rows:
        """The rows of a document that a unit reads: those of its questions, if they are of some."""
        if not upstream.per_question:
            return rows
        if upstream.id not in self.places:
            self.places[upstream.id] = defaultdict(list)
            for place, row in enumerate(rows):
                self.places[upstream.id][row.question_id].append(place)
        places = self.places[upstream.id]
        wanted = sorted(place for own in unit.inputs for place in places.get(own, ()))
        return tuple(rows[place] for place in wanted)

    async def _commit(self, step: Step, stage: Stage, unit: Unit, rows: UnitRows) -> Rows:
        """Make the unit's calls and rows, commit them, and return the committed rows.

        Another worker may commit first. If it committed the calls, rows are made from those; if it
        committed the rows, ours are discarded.
        """
        started_at = utc_now()
        committed: Rows | None = None
        async with Journal(self.shards.warehouse, step.id, unit.unit, unit.attempt) as journal:
            while committed is None:
                replies = await self._replies(step, unit, journal)
                made, calls = await self._make(step, stage, unit, rows, replies)
                own = None if replies.is_committed else calls
                commit = partial(_commit, self.shards, step, unit, own, made, started_at)
                committed = await to_thread(commit)
        return committed

    async def _replies(self, step: Step, unit: Unit, journal: Journal) -> Replies:
        """The replies that the unit has already; none are kept of a stage that asks nothing."""
        if not step.prompts:
            return Replies(is_committed=True)
        is_kept = self.reader is not None and self.reader.keeps_journal
        shared = self.shared(step.id)
        return await to_thread(
            _replies, self.shards, step, unit, shared, journal if is_kept else None
        )

    async def _make(
        self, step: Step, stage: Stage, unit: Unit, rows: UnitRows, replies: Replies
    ) -> tuple[Rows, tuple[Call, ...]]:
        """The unit's rows and its calls; no call, and a row with a problem per input, if the unit
        has crashed its workers."""
        if self.attempt.crashes.give_up(f"{step.id}/{unit.unit}"):
            return tuple(stage.failed(rows, "unit_failed", _GIVEN_UP)), ()
        document_id = rows.document.document_id
        ask = Ask(self.reader, step.name, document_id, replies, step.repeat, self.rank)
        self.progress.started(unit, ask.progress)
        ask.progress.tell(stage.expected(rows))
        made = await _run(stage, rows, ask)
        sent = self.summary.asked.get(step.id, 0) + len(ask.sent_calls)
        self.summary.asked[step.id] = sent
        for call in ask.sent_calls:
            self.summary.called(call)
        return made, ask.calls()


def _load(shards: Shards, step: Step, unit: Unit) -> Rows:
    """The committed rows of a unit, of its own questions. It blocks, as those below do."""
    rows: Rows = shards.load(step.writes, step.id, unit.unit, unit.attempt)
    of_some = step.per_question
    return tuple(row for row in rows if row.question_id in unit.inputs) if of_some else rows


def _replies(
    shards: Shards, step: Step, unit: Unit, shared: SharedReplies, journal: Journal | None
) -> Replies:
    """The replies that a unit has: its committed calls, else its journal's; and, of a further
    attempt at it, the calls of the previous one and those of its rows that have a problem."""
    committed = shards.recorded(step.id, unit.unit, unit.attempt)
    calls = journal.read() if journal and committed is None else committed
    earlier = EarlierCalls()
    if unit.attempt > 1:
        before = (step.id, unit.unit, unit.attempt - 1)
        rows = shards.load(step.writes, *before)
        earlier = EarlierCalls(shards.recorded(*before) or (), [row for row in rows if row.problem])
    return Replies(
        calls=calls or (),
        is_committed=committed is not None,
        attempt=unit.attempt,
        earlier=earlier,
        shared=shared,
        keep=journal.add if journal else None,
    )


def _commit(
    shards: Shards, step: Step, unit: Unit, calls: Rows | None, made: Rows, started_at: datetime
) -> Rows | None:
    """Commit the calls (None: they are), then the rows. Returns the committed rows, maybe another
    worker's; None if another has committed other calls."""
    commit = partial(shards.commit, started_at=started_at)
    if calls is not None and not commit(Call, step, unit, calls):
        return None
    return made if commit(step.writes, step, unit, made) else _load(shards, step, unit)


class _Failure(NamedTuple):
    problem: Problem
    detail: str


async def _run(stage: Stage, rows: UnitRows, ask: Ask) -> Rows:
    """The stage's rows; if an input is unusable, the stage raises or its rows are wrong, a row with
    a problem per input."""
    made = await _tried(_checked(stage, rows, ask))
    if isinstance(made, _Failure):
        made = await _tried(_failed(stage, rows, made))
    if isinstance(made, _Failure):  # `failed` is the plugin's, too
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
    """The rows, or why there are none."""
    with contained(EngineError, OutageError, AccountingError, StorageError) as raised:
        return await making
    return _Failure("unit_failed", raised.trace())
