"""The pilot through all stages with an engine that only counts, once for each scenario.

In this process, without Ray, on copies in memory: the warehouse is read, never written.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from upath import UPath

from jobs.loading import load_corpus
from jobs.phases import Phase
from jobs.plan.pilot import Pilot
from jobs.plan.scaling import MEASURES, Numbers, Point
from jobs.preparation import Prepared
from pipeline.ask import Reader
from pipeline.counting_engine import CountingEngine
from pipeline.embedder import EmbedderSettings, Kind, Vectors
from pipeline.engines import reader_of
from pipeline.executor import DocumentExecutor, Summary
from pipeline.in_flight import Crashes, InFlightMarker
from pipeline.place import AnyPath
from pipeline.rows import Call, Record
from pipeline.shared_replies import SharedCopies
from pipeline.steps import Step
from pipeline.store import Shards
from pipeline.store.shards import content
from pipeline.units import Unit
from pipeline.usage import UsageCounters

R = TypeVar("R", bound=Record)
MakeEngine = Callable[[Phase], CountingEngine]
_DIMENSIONS = 384


class NoEmbedder(EmbedderSettings):
    """Vectors that say nothing: a plan runs no model. Which texts are nearest is then chance."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        return np.ones((len(texts), _DIMENSIONS), dtype=np.float32)


class Copies(Shards):
    """A warehouse that is only read: what is committed of `documents` stays in memory."""

    def __init__(self, warehouse: AnyPath, documents: Collection[str] = ()) -> None:
        super().__init__(warehouse)
        self._documents = frozenset(documents)
        self.kept: dict[tuple[str, str, str], tuple[type[Record], Step, Unit, Any]] = {}

    def commit(self, record: type[Record], step: Step, unit: Unit, rows: Sequence[Record]) -> bool:
        if unit.document_id in self._documents:
            self.kept[record.table, step.id, unit.unit] = (record, step, unit, tuple(rows))
        return True

    def load(self, record: type[R], step_id: str, unit: str) -> tuple[R, ...]:
        kept = self.kept.get((record.table, step_id, unit))
        return super().load(record, step_id, unit) if kept is None else kept[-1]

    def recorded(self, step_id: str, unit: str) -> tuple[Call, ...] | None:
        kept = self.kept.get((Call.table, step_id, unit))
        return super().recorded(step_id, unit) if kept is None else kept[-1]

    def another(self) -> "Copies":
        """With what this one holds; what is committed there is not here."""
        found = Copies(self.warehouse, self._documents)
        found.kept = dict(self.kept)
        return found


def loaded(prepared: Prepared, pilot: Pilot) -> Copies:
    """The rows of the pilot's documents and questions, where the warehouse has none yet."""
    copies = Copies(prepared.shards.warehouse, {key.document_id for key in pilot.keys})
    first = {step.id for step in prepared.steps if step.stage is None}
    if any(u.step_id in first and not u.is_done for own in pilot.units.values() for u in own):
        load_corpus(prepared.config, copies, prepared.steps, lambda line: None)
    return copies


def execute(prepared: Prepared, pilot: Pilot, copies: Copies, make_engine: MakeEngine) -> None:
    """Every unit of the pilot that is not done; `copies` then hold its rows and calls."""
    for phase in prepared.phases:
        reader = None
        if phase.engine is not None:
            config = prepared.config
            how = (phase.engine, config.family_resolved(), config.reply_format)
            reader = reader_of(make_engine(phase), *how)
        asyncio.run(_phase(phase, pilot, copies, reader))


async def _phase(phase: Phase, pilot: Pilot, copies: Copies, reader: Reader | None) -> None:
    shared = cache(lambda step_id: SharedCopies(copies.warehouse, step_id))
    steps = phase.with_upstream()
    for _, items in phase.executions(pilot.keys, pilot.units, lambda: 1):
        for document_id, units in items:
            await DocumentExecutor(
                shards=copies,
                steps=steps,
                reader=reader,
                units=units,
                summary=Summary(document_id),
                rank=0,
                marker=InFlightMarker(UPath("nowhere"), document_id, alone=False),
                crashes=Crashes(0, Counter()),
                shared=shared,
                usage=UsageCounters(),
                is_ending=_never,
            ).finish()


async def _never() -> bool:
    return False


def costs(pilot: Pilot, copies: Copies, with_shared: bool) -> dict[str, list[Point]]:
    """By step what each document of the pilot comes to, with all its questions; `with_shared`
    counts replies too that another document of the pilot has asked for."""
    calls: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for record, step, unit, rows in copies.kept.values():
        if record is Call:
            own = [call for call in rows if with_shared or not call.is_shared]
            calls[step.id, unit.document_id] += own
    counted = _times(pilot)
    steps = {step.id: step for record, step, *_ in copies.kept.values() if record is Call}
    found: dict[str, list[Point]] = defaultdict(list)
    for work in pilot.chosen:
        for step_id in work.kind & steps.keys():
            name = (step_id, work.key.document_id)
            if not counted[name]:  # none of the questions chosen has it to do
                continue
            values = _whole(calls.get(name, []), counted[name], work.times[step_id])
            found[step_id].append(Point(work.size(steps[step_id]), values))
    return found


def cost_of(calls: Iterable[Call]) -> Numbers:
    """Calls added up, by measure."""
    rows = [(1, c.prompt_tokens, c.prompt_tokens - c.cached_tokens, c.reply_tokens) for c in calls]
    total: Numbers = np.array([[0.0] * len(MEASURES), *rows]).sum(axis=0)
    return total


def _whole(calls: Sequence[Call], counted: int, times: int) -> Numbers:
    """What all `times` questions come to, of which so many were counted.

    The one that found least in the prefix cache came first; the others show what each more of them
    finds there.
    """
    values = cost_of(calls)
    if counted == times:
        return values
    cached: Counter[str | None] = Counter()
    for call in calls:
        cached[call.question_id] += call.cached_tokens
    first = min(cached.values(), default=0) if len(cached) == counted else 0
    later = (sum(cached.values()) - first) / max(1, counted - 1)
    whole = np.array(values * times / counted)
    whole[2] = whole[1] - first - later * (times - 1)
    return whole


def _times(pilot: Pilot) -> Mapping[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for document_id, units in pilot.units.items():
        for unit in units:
            if not unit.is_done:
                found[unit.step_id, document_id] += len(unit.inputs) or 1
    return found


def file_sizes(pilot: Pilot, copies: Copies) -> dict[tuple[str, str], list[Point]]:
    """By step and table the bytes that each document of the pilot writes."""
    sizes: Counter[tuple[str, str, str]] = Counter()
    steps = {step.id: step for _, step, *_ in copies.kept.values()}
    for record, step, unit, rows in copies.kept.values():
        sizes[step.id, record.table, unit.document_id] += len(content(record, step, unit, rows))
    counted, works = _times(pilot), {work.key.document_id: work for work in pilot.chosen}
    found: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for (step_id, table, name), num_bytes in sizes.items():
        whole = num_bytes * works[name].times.get(step_id, 0) / max(1, counted[step_id, name])
        found[step_id, table].append(Point(works[name].size(steps[step_id]), np.array([whole])))
    return found
