"""The worker: walks one document through the steps of a phase. Knows neither ray nor reading.

Rows are pulled: a pending unit asks for its upstream rows, which are loaded where their shard
stands and made where it does not. Documents do not wait for each other.
"""

import asyncio
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline.alive import Heartbeat
from pipeline.ask import Ask, Reader
from pipeline.errors import AccountingError, EngineError
from pipeline.records import TABLES, Call, Record
from pipeline.stage import DocumentRows, Stage
from pipeline.steps import Step, Unit
from pipeline.store import Shards

Rows = tuple[Any, ...]


@dataclass
class Summary:
    """What became of one document in one phase; all that leaves a worker."""

    document_id: str
    worker: str = ""
    units: int = 0
    rows: int = 0
    problems: int = 0
    calls: dict[str, int] = field(default_factory=dict)  # requests to the engine, by step_id
    tokens: int = 0  # prompt and reply tokens of those units, in the engine's tokens
    seconds: float = 0.0


class Worker:
    """Holds one engine (none for scoring) and commits the units it is given."""

    def __init__(
        self, warehouse: Path, run: str, steps: Sequence[Step], reader: Reader | None
    ) -> None:
        self._shards = Shards(warehouse)
        self._alive = Heartbeat(warehouse / "runs" / run / "alive")
        self._steps = {step.id: step for step in steps}
        self._reader = reader

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary:
        """Commit every unit that is not done. Raises EngineError where the engine is dead."""
        start = time.perf_counter()
        walk = _Walk(
            self._shards, self._steps, self._reader, units, Summary(document_id, self._alive.name)
        )
        with self._alive.on(document_id):
            await walk.finish()
        walk.summary.seconds = time.perf_counter() - start
        return walk.summary


@dataclass
class _Walk:
    shards: Shards
    steps: Mapping[str, Step]
    reader: Reader | None
    units: Sequence[Unit]
    summary: Summary
    tasks: dict[str, asyncio.Task[Rows]] = field(default_factory=dict)

    async def finish(self) -> None:
        pending = {unit.step_id for unit in self.units if not unit.is_done}
        await asyncio.gather(*(self.rows_of(self.steps[step_id]) for step_id in pending))

    def rows_of(self, step: Step) -> asyncio.Task[Rows]:
        """The document's rows in a step, made or loaded once however many ask for them."""
        if step.id not in self.tasks:
            self.tasks[step.id] = asyncio.create_task(self._rows_of(step))
        return self.tasks[step.id]

    async def _rows_of(self, step: Step) -> Rows:
        units = [unit for unit in self.units if unit.step_id == step.id]
        return tuple(chain.from_iterable([await self._unit(step, unit) for unit in units]))

    async def _unit(self, step: Step, unit: Unit) -> Rows:
        if unit.is_done or step.stage is None:
            return self._load(step, unit)
        rows = await self._inputs(step, unit)
        made = await self._commit(step, step.stage, unit, rows)
        self.summary.units += 1
        self.summary.rows += len(made)
        self.summary.problems += sum(row.problem is not None for row in made)
        return made

    def _load(self, step: Step, unit: Unit) -> Rows:
        rows: Rows = self.shards.load(TABLES[step.table], step.id, unit.unit)
        if not step.per_question:
            return rows
        return tuple(row for row in rows if row.question_id in unit.inputs)

    async def _inputs(self, step: Step, unit: Unit) -> DocumentRows:
        """The unit's document and its rows of the tables the stage reads."""
        tables: dict[str, Rows] = {}
        for upstream in self._read_by(step):
            found = await self.rows_of(upstream)
            if upstream.per_question:
                found = tuple(row for row in found if row.question_id in unit.inputs)
            tables[upstream.table] = found
        (document,) = tables.pop("documents")
        rows = DocumentRows(document=document, **tables)
        if {question.question_id for question in rows.questions} != set(unit.inputs):
            raise AccountingError(f"{step.id}/{unit.unit}: its questions are not all there")
        return rows if step.stage and step.stage.reads_gold else rows.without_gold()

    def _read_by(self, step: Step) -> list[Step]:
        loaded = [s for s in self.steps.values() if s.stage is None]
        loaded = [s for s in loaded if step.per_question or not s.per_question]
        return [*loaded, *(s for s in step.upstream if s.stage is not None)]

    async def _commit(self, step: Step, stage: Stage, unit: Unit, rows: DocumentRows) -> Rows:
        """Calls first, then the rows. Whoever finds or loses the calls makes its rows from them;
        whoever loses the rows discards its own: what stands is what everybody goes on with."""
        recorded = self.shards.recorded(step.id, unit.unit) if stage.prompts else ()
        made, calls = await self._make(step, stage, rows, recorded or ())
        if recorded is None and not self.shards.commit("calls", step, unit, calls):
            made, calls = await self._make(
                step, stage, rows, self.shards.recorded(step.id, unit.unit) or ()
            )
        if self.shards.commit(step.table, step, unit, made):
            return made
        return self._load(step, unit)

    async def _make(
        self, step: Step, stage: Stage, rows: DocumentRows, recorded: Sequence[Call]
    ) -> tuple[Rows, tuple[Call, ...]]:
        ask = Ask(self.reader, step.name, rows.document.document_id, recorded, step.repeat)
        made = await _run(stage, rows, ask)
        calls = ask.calls()
        asked = self.summary.calls.get(step.id, 0) + ask.num_asked
        self.summary.calls[step.id] = asked
        self.summary.tokens += sum(call.prompt_tokens + call.reply_tokens for call in calls)
        return made, calls


async def _run(stage: Stage, rows: DocumentRows, ask: Ask) -> Rows:
    """The stage's rows; a row with a problem for every input where it cannot make any."""
    if lack := rows.lack():
        return tuple(stage.failed(rows, "upstream", lack))
    try:
        made: Sequence[Record] = await stage.run(rows, ask)
        stage.check(rows, made)
    except (EngineError, AccountingError):
        raise
    except Exception:  # noqa: BLE001  # the one place: one bad unit must not end the night
        return tuple(stage.failed(rows, "unit_failed", traceback.format_exc(limit=-3)))
    return tuple(made)
