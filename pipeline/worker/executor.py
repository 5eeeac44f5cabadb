"""Execute one document's stages in a phase, in dependency order.

A pending unit awaits the rows that it reads, which are loaded if committed and made otherwise; its
stage's rows are committed after the calls for them. Independent of Ray and of what stages do.
"""

import asyncio
from asyncio import to_thread
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pipeline.asking.ask import Ask, Reader
from pipeline.asking.replies import Journal, Replies, SharedReplies
from pipeline.core.calls import Call, UnitProgress, UsageCounters
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
from pipeline.work.stage import Stage, wrong_rows
from pipeline.work.units import Step, Unit, mask_fields
from pipeline.worker.crashes import GIVEN_UP, Attempt
from pipeline.worker.progress import DocumentProgress, Summary

Rows = tuple[Any, ...]


@dataclass(kw_only=True)
class DocumentExecutor:
    """The units of one document in a phase, and the tasks that make or load their rows."""

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
    is_ending: Callable[[], Awaitable[bool]]  # the run is ending, so no unit is started
    tasks: dict[str, asyncio.Task[Rows | None]] = field(default_factory=dict)  # by step_id
    by_question: dict[str, dict[str, list[Record]]] = field(default_factory=dict)  # by step_id

    async def finish(self) -> None:
        """Commit every pending unit, unless the run ends before."""
        pending = [unit for unit in self.units if not unit.is_done]
        for unit in pending:
            self.progress.begun(unit, self.steps[unit.step_id], UnitProgress())
        step_ids = {unit.step_id for unit in pending}
        await asyncio.gather(*(self.rows_of(self.steps[step_id]) for step_id in step_ids))

    def rows_of(self, step: Step) -> asyncio.Task[Rows | None]:
        """The document's rows in a step, made or loaded once for all stages that read them; None if
        the run ended before."""
        if step.id not in self.tasks:
            self.tasks[step.id] = asyncio.create_task(self._rows_of(step))
        return self.tasks[step.id]

    async def _rows_of(self, step: Step) -> Rows | None:
        units = (unit for unit in self.units if unit.step_id == step.id)
        of_units = await asyncio.gather(*(self._unit(step, unit) for unit in units))
        committed = [rows for rows in of_units if rows is not None]
        is_whole = len(committed) == len(of_units)
        return tuple(chain.from_iterable(committed)) if is_whole else None

    async def _unit(self, step: Step, unit: Unit) -> Rows | None:
        if unit.is_done or step.stage is None:
            return await to_thread(self._load, step, unit)
        inputs = await self._inputs(step, step.stage, unit)
        if inputs is None or await self.is_ending():
            return None
        async with self.attempt.unit(f"{step.id}/{unit.unit}"):
            rows = await self._make(step, step.stage, unit, inputs)
        num_problems = sum(row.problem is not None for row in rows)
        for usage in (self.usage, self.summary):
            usage.committed(len(rows), num_problems)
        self.progress.committed(unit)
        return rows

    def _load(self, step: Step, unit: Unit) -> Rows:
        """The committed rows of a unit, without the rows of questions that are not its own. It
        blocks."""
        rows: Rows = self.shards.load(step.writes, step.id, unit.unit, unit.attempt)
        if not step.per_question:
            return rows
        return tuple(row for row in rows if row.question_id in unit.inputs)

    async def _inputs(self, step: Step, stage: Stage, unit: Unit) -> UnitRows | None:
        """The rows that the stage reads for this unit, with only the fields of document and
        questions that it names; None if the run ended before. Raises AccountingError if a question
        is missing."""
        loaded = [s for s in self.steps.values() if s.stage is None]
        loaded = [s for s in loaded if step.per_question or not s.per_question]
        tables: dict[type[Record], Rows] = {}
        for upstream in (*loaded, *(s for s in step.upstream if s.stage is not None)):
            if (rows := await self.rows_of(upstream)) is None:
                return None
            if upstream.per_question:
                if upstream.id not in self.by_question:
                    self.by_question[upstream.id] = defaultdict(list)
                    for row in rows:
                        self.by_question[upstream.id][row.question_id].append(row)
                by_question = self.by_question[upstream.id]
                rows = tuple(chain.from_iterable(by_question.get(q, ()) for q in unit.inputs))
            tables[upstream.writes] = rows
        (document,) = tables.pop(Document)
        questions = tables.pop(Question, ())
        if {question.question_id for question in questions} != set(unit.inputs):
            raise AccountingError(f"{unit.step_id}/{unit.unit}: some of its questions are missing")
        self.progress.num_words = document.num_words
        return UnitRows(
            document=mask_fields(document, stage.document_fields),
            questions=tuple(mask_fields(question, stage.question_fields) for question in questions),
            tables=tables,
        )

    async def _make(self, step: Step, stage: Stage, unit: Unit, inputs: UnitRows) -> Rows:
        """Make the unit's calls and rows, commit them, and return the committed rows; if the unit
        has crashed its workers, no call, and a row with a problem per input.

        Another worker may commit first. If it committed the calls, rows are made from those; if it
        committed the rows, ours are discarded.
        """
        commit = self.shards.commit
        started_at, keeps_journal = utc_now(), bool(self.reader and self.reader.keeps_journal)
        committed: Rows | None = None
        async with Journal(self.shards.warehouse, step.id, unit.unit, unit.attempt) as journal:
            while committed is None:
                of_unit = (step, unit, self.shared(step.id), journal if keeps_journal else None)
                replies = await to_thread(self._replies_of, *of_unit)
                calls: Sequence[Call] = ()
                if self.attempt.crashes.give_up(f"{step.id}/{unit.unit}"):
                    rows: Rows = tuple(stage.failed(inputs, "unit_failed", GIVEN_UP))
                else:
                    document_id = inputs.document.document_id
                    ask = Ask(self.reader, step.name, document_id, replies, step.repeat, self.rank)
                    self.progress.begun(unit, step, ask.progress)
                    ask.progress.tell(stage.expected(inputs))
                    rows, calls = await stage_rows(stage, inputs, ask), ask.calls()
                    num_sent = self.summary.asked.get(step.id, 0) + len(ask.sent_calls)
                    self.summary.asked[step.id] = num_sent
                    for call in ask.sent_calls:
                        self.summary.called(call)
                if replies.is_committed or await to_thread(
                    commit, Call, step, unit, calls, started_at
                ):
                    is_ours = await to_thread(commit, step.writes, step, unit, rows, started_at)
                    committed = rows if is_ours else await to_thread(self._load, step, unit)
        return committed

    def _replies_of(
        self, step: Step, unit: Unit, shared: SharedReplies, journal: Journal | None
    ) -> Replies:
        """The replies that a unit has: its committed calls, or else its journal's; for a further
        attempt, also the calls of the previous one and its rows with a problem. It blocks."""
        if not step.prompts:
            return Replies(is_committed=True)
        committed = self.shards.recorded(step.id, unit.unit, unit.attempt)
        calls = journal.read() if journal and committed is None else committed
        earlier: Sequence[Call] = ()
        problems: Sequence[Record] = ()
        if unit.attempt > 1:
            before = (step.id, unit.unit, unit.attempt - 1)
            earlier = self.shards.recorded(*before) or ()
            problems = [row for row in self.shards.load(step.writes, *before) if row.problem]
        return Replies(
            calls=calls or (),
            is_committed=committed is not None,
            attempt=unit.attempt,
            earlier=earlier,
            problems=problems,
            shared=shared,
            journal=journal,
        )


async def stage_rows(stage: Stage, rows: UnitRows, ask: Ask) -> Rows:
    """The stage's rows; if an input is unusable, the stage raises or its rows are wrong, a row with
    a problem per input."""
    problem: Problem = "unit_failed"
    not_a_row = (EngineError, OutageError, AccountingError, StorageError)
    with contained(*not_a_row) as raised:
        if detail := stage.why_unusable(rows):
            problem = "upstream"
        else:
            new_rows = await stage.run(rows, ask)
            if not (detail := wrong_rows(stage, rows, new_rows)):
                return tuple(new_rows)
    detail = raised.trace() if raised.error else detail
    with contained(*not_a_row) as raised:
        failed = stage.failed(rows, problem, detail)
        if not (wrong := wrong_rows(stage, rows, failed, is_checked=False)):
            return tuple(failed)
        detail = f"{wrong} (from its `failed`, after: {detail})"
    detail = raised.trace() if raised.error else detail
    return tuple(Stage.failed(stage, rows, "unit_failed", detail))  # `failed` may be a plugin's
