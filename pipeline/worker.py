"""The worker: walks one document through the steps of a phase. Knows neither ray nor reading.

Rows are pulled: a pending unit asks for its upstream rows, which are loaded where their shard
stands and made where it does not. Documents do not wait for each other.
"""

import asyncio
import time
import traceback
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from aiorwlock import RWLock

from pipeline.alive import Heartbeat
from pipeline.ask import Ask, Reader
from pipeline.attempts import Attempt, Attempts, Deaths
from pipeline.errors import AccountingError, EngineError, StartError
from pipeline.place import AnyPath, place
from pipeline.records import TABLES, Call, Record
from pipeline.shared import SharedReplies
from pipeline.slots import Room
from pipeline.stage import DocumentRows, Stage
from pipeline.steps import Step, Unit
from pipeline.store import Shards

Rows = tuple[Any, ...]
# Bytes of the documents in hand, or one larger. All that is made of a document on the way takes
# about thirteen times its text.
_TEXT_IN_HAND = 64_000_000
_KILLS = "a worker died twice while it worked on this alone"


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


Start = Callable[[], Awaitable[Reader]]


class Worker:
    """Starts one engine (none for scoring) and commits the units it is given.

    `run` is the run's folder in the warehouse; `launch` names the command that works on it now,
    `name` the worker, and after its process died the next one in its place.
    """

    def __init__(
        self,
        run: AnyPath,
        launch: str,
        name: str,
        steps: Sequence[Step],
        start: Start | None,
        start_timeout: float,
    ) -> None:
        run = place(run)
        self._name = name
        self._shards = Shards(run.parent.parent)
        self._alive = Heartbeat(run / "alive", self._done)
        self._attempts = Attempts(run / "attempts" / launch)
        self._steps = {step.id: step for step in steps}
        self._start, self._start_timeout = start, start_timeout
        self._reader: asyncio.Task[Reader] | None = None
        self._num_units = 0
        self._shared: dict[str, SharedReplies] = {}
        self._ranks = count()
        self._room = RWLock()  # a document that must be alone in hand is its writer
        self._text = Room(_TEXT_IN_HAND)

    async def work(self, document_id: str, units: Sequence[Unit]) -> Summary:
        """Commit every unit that is not done.

        A document that was in hand when a worker died is worked on alone, one unit at a time; a
        unit that cost two workers their lives so becomes `unit_failed` rows. Raises StartError
        where the engine cannot start, EngineError where it is dead.
        """
        began = time.perf_counter()
        reader = await self._started() if self._start else None
        item = "/".join([document_id, *sorted(unit.unit for unit in units if not unit.is_done)])
        deaths = self._attempts.deaths(item)
        alone, rank = bool(deaths.total), next(self._ranks)
        text = await to_thread(self._text_bytes, units)
        async with (
            self._room.writer if alone else self._room.reader,
            self._text.held(text),
        ):
            with self._attempts.attempt(item, alone) as attempt, self._alive.on(document_id):
                walk = _Walk(
                    shards=self._shards,
                    steps=self._steps,
                    reader=reader,
                    units=units,
                    summary=Summary(document_id, self._alive.name),
                    rank=rank,
                    attempt=attempt,
                    deaths=deaths,
                    shared=self._shared_replies,
                )
                await walk.finish()
        self._num_units += walk.summary.units
        walk.summary.seconds = time.perf_counter() - began
        return walk.summary

    def _text_bytes(self, units: Sequence[Unit]) -> int:
        """How much text the document is."""
        loaded = (unit for unit in units if self._steps[unit.step_id].table == "documents")
        return sum(self._shards.num_bytes("documents", u.step_id, u.unit) for u in loaded)

    def _shared_replies(self, step_id: str) -> SharedReplies:
        if step_id not in self._shared:
            self._shared[step_id] = SharedReplies(self._shards.warehouse / "shared" / step_id)
        return self._shared[step_id]

    def _done(self) -> int:
        """Calls and units finished."""
        is_up = self._reader and self._reader.done() and not self._reader.exception()
        calls = self._reader.result().slots.num_finished if self._reader and is_up else 0
        return self._num_units + calls

    async def _started(self) -> Reader:
        """The reader, started once however many documents wait for it."""
        if self._reader is None:
            self._reader = asyncio.create_task(self._start_reader())
        return await asyncio.shield(self._reader)

    async def _start_reader(self) -> Reader:
        assert self._start is not None
        with self._alive.starting(), self._attempts.start(self._name):
            try:
                return await asyncio.wait_for(self._start(), self._start_timeout)
            except TimeoutError:
                raise StartError(
                    f"the engine did not start within {self._start_timeout:g} s; raise "
                    "engine.start_timeout (or rater.start_timeout) if it needs longer"
                ) from None


@dataclass(kw_only=True)
class _Walk:
    shards: Shards
    steps: Mapping[str, Step]
    reader: Reader | None
    units: Sequence[Unit]
    summary: Summary
    rank: int
    attempt: Attempt
    deaths: Deaths
    shared: Callable[[str], SharedReplies]  # of a step
    tasks: dict[str, asyncio.Task[Rows]] = field(default_factory=dict)
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)

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
        found = await asyncio.gather(*(self._unit(step, unit) for unit in units))
        return tuple(chain.from_iterable(found))

    async def _unit(self, step: Step, unit: Unit) -> Rows:
        if unit.is_done or step.stage is None:
            return await to_thread(self._load, step, unit)
        rows = await self._inputs(step, unit)
        async with self.one_by_one if self.attempt.alone else nullcontext():
            with self.attempt.only(f"{step.id}/{unit.unit}"):
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
        own, commit = (step.id, unit.unit), self.shards.commit
        recorded = await to_thread(self.shards.recorded, *own) if stage.prompts else ()
        if self.deaths.give_up(f"{step.id}/{unit.unit}"):
            calls: tuple[Call, ...] = ()
            made: Rows = tuple(stage.failed(rows, "unit_failed", _KILLS))
        else:
            made, calls = await self._make(step, stage, rows, recorded or ())
        if recorded is None and not await to_thread(commit, "calls", step, unit, calls):
            stand = await to_thread(self.shards.recorded, *own) or ()
            made, calls = await self._make(step, stage, rows, stand)
        if await to_thread(commit, step.table, step, unit, made):
            return made
        return await to_thread(self._load, step, unit)

    async def _make(
        self, step: Step, stage: Stage, rows: DocumentRows, recorded: Sequence[Call]
    ) -> tuple[Rows, tuple[Call, ...]]:
        document_id = rows.document.document_id
        reader = self.reader and replace(self.reader, shared=self.shared(step.id))
        ask = Ask(reader, step.name, document_id, recorded, step.repeat, self.rank)
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
