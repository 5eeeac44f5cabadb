"""Phases: groups of steps that one engine executes without waiting for another; and a run's plan.

A step without an engine belongs to the phase of the steps that read it; if none of those asks an
engine, to the last phase, after GPUs are released.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jobs.config.run_config import SECTIONS
from jobs.graph.step_graph import StepWithEngine
from pipeline.asking.ask import num_slots
from pipeline.core.engine import EngineSettings
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage import AnyPath
from pipeline.store.runs.run_folder import PlannedWork, read_plan, write_plan
from pipeline.work.stage import ROLES, Role
from pipeline.work.units import Execution, PlannedDocument, Step, Work, weight
from pipeline.worker.worker import MakeWorker, Start, Worker

if TYPE_CHECKING:
    from pipeline.cluster import Pool


_SCORING_DOCUMENTS = 2  # in flight per worker: one is loaded while the other is scored
_NAMES: Mapping[Role, str] = {
    "reader": "reading", "memory": "building memories", "extractor": "extracting",
    "query_expander": "inferring times", "judge": "rating",
}  # fmt: skip


class RunPlan:
    """The units of one launch, in the temporary `file`, so that the process holds only sums."""

    def __init__(self, steps: Sequence[Step], documents: Iterable[PlannedDocument]) -> None:
        self._folder = TemporaryDirectory(prefix="gistmill-plan-")
        self.file = Path(self._folder.name) / "units.parquet"
        self._documents = Counter[frozenset[str]]()  # by the steps that they have pending units in
        self._words = defaultdict[str, float](float)  # of pending units, by step
        self.num_pending, self.has_chunks = 0, False
        asking = {step.id for step in steps if step.prompts}
        write_plan(self.file, (self._counted(document, asking) for document in documents))

    def _counted(self, document: PlannedDocument, asking: Collection[str]) -> PlannedDocument:
        pending = [unit for unit in document.units if not unit.is_done]
        self.num_pending += len(pending)
        self._documents[frozenset(unit.step_id for unit in pending)] += 1
        self.has_chunks |= len({unit.chunk for unit in pending if unit.inputs}) > 1
        for unit in pending:
            self._words[unit.step_id] += weight(unit, document.num_words, unit.step_id in asking)
        return document

    def documents(self, steps: Collection[str] | None = None) -> Iterator[PlannedDocument]:
        return read_plan(self.file, steps)

    def pending(self) -> set[str]:
        return {*self._words}

    def is_within(self, steps: Collection[str], other_steps: Collection[str]) -> bool:
        """True if every document with pending units in `steps` has some in `other_steps`."""
        with_steps = (pending for pending in self._documents if not pending.isdisjoint(steps))
        return not any(pending.isdisjoint(other_steps) for pending in with_steps)

    def work(self, execution: Execution) -> Work:
        documents, steps = PlannedWork(self.file, execution), execution.executed
        if execution.by_chunk:
            num = sum(1 for _ in documents)
        else:
            num = sum(n for pending, n in self._documents.items() if not pending.isdisjoint(steps))
        return Work(documents, num, sum(self._words.get(step, 0.0) for step in steps))


@dataclass(frozen=True)
class Phase:
    """Steps that one engine executes; `section`: the config section of the engine."""

    name: str
    section: str
    engine: EngineSettings | None
    loading: tuple[Step, ...]  # documents and questions, which every phase reads
    steps: tuple[Step, ...]

    @property
    def slots(self) -> int:
        return num_slots(self.engine) if self.engine else _SCORING_DOCUMENTS

    def with_upstream(self) -> dict[str, Step]:
        upstream = [up for step in self.steps for up in step.upstream]
        return {step.id: step for step in (*self.loading, *upstream, *self.steps)}

    def pool(self, cluster: ClusterSettings) -> "Pool":
        from pipeline.cluster import Pool  # imported here: ray takes a second, `plan` needs none

        engine = self.engine
        return Pool(
            section=self.section,
            min_workers=engine.min_workers if engine else 1,
            max_workers=engine.max_workers if engine else cluster.scoring_workers,
            cpus=engine.cpus if engine else 1.0,
            gpus=engine.gpus if engine else 0.0,
            slots=self.slots,
            cluster=cluster,
        )

    def make_worker(self, run: AnyPath, launch: str, start: Start | None) -> MakeWorker:
        """What makes a worker, in the process of the worker. It holds no RunConfig, whose import
        takes a second."""
        steps = list(self.with_upstream().values())
        seconds = self.engine.start_timeout if self.engine else 60.0
        return partial(Worker, run, launch, steps=steps, start=start, start_timeout=seconds)

    @property
    def execution(self) -> Execution:
        return Execution(
            self.name,
            executed=frozenset(step.id for step in self.steps),
            read=frozenset(self.with_upstream()),
            asking=frozenset(step.id for step in self.steps if step.prompts),
        )

    def executions(
        self, plan: RunPlan, num_workers: Callable[[], int]
    ) -> Iterator[tuple[Execution, Work]]:
        """Yield one execution of all; or two, if several workers can share the chunks of a
        document's questions. Then the first execution makes what all chunks read."""
        whole = self.execution
        work = plan.work(whole)
        if work.num_documents == 0:
            return
        if plan.has_chunks:
            of_questions = {step.id for step in self.with_upstream().values() if step.per_question}
            of_memory = whole.read - of_questions
            name, steps = f"{self.name}: memory", whole.executed & of_memory
            memory = replace(whole, name=name, executed=steps, read=of_memory)
            chunks = replace(whole, executed=whole.executed - of_memory, by_chunk=True)
            first, second = plan.work(memory), plan.work(chunks)
            if second.num_documents > work.num_documents and num_workers() > 1:
                if first.num_documents:
                    yield memory, first
                    chunks = replace(chunks, name=f"{self.name}: questions")
                yield chunks, second
                return
        yield whole, work


def phases(steps_with_engines: Sequence[StepWithEngine]) -> list[Phase]:
    """The phases of all steps, in order. An engine that can finish goes first, else the engine of
    the first role in `ROLES`; so judges come last."""
    loading = tuple(step for step, _ in steps_with_engines if step.stage is None)
    left = [(step, engine) for step, engine in steps_with_engines if step.stage is not None]
    asking = [(step.stage.role, engine) for step, engine in left if engine and step.stage]
    asking.sort(key=lambda pair: ROLES.index(pair[0]))
    engines = list({repr(engine): engine for _, engine in asking}.values())
    done = {step.id for step in loading}
    ordered: list[Phase] = []
    while any(engine is not None for _, engine in left):
        ready = [(e, steps) for e in engines if (steps := _executable(left, e, done))]
        for engine, steps in ready:
            if sum(e == engine for _, e in left) == sum(e == engine for _, e in steps):
                break
        else:
            engine, steps = ready[0]
        roles = {step.stage.role for step, asks in steps if asks and step.stage}
        role = next(role for role in ROLES if role in roles)
        times = sum(phase.name.split(" (")[0] == _NAMES[role] for phase in ordered)
        name = f"{_NAMES[role]} ({times + 1})" if times else _NAMES[role]
        own_steps = tuple(step for step, _ in steps)
        ordered.append(Phase(name, SECTIONS[role], engine, loading, own_steps))
        done |= {step.id for step in own_steps}
        left = [item for item in left if item[0].id not in done]
    if left:
        scoring = tuple(step for step, _ in left)
        ordered.append(Phase("scoring", "cluster", None, loading, scoring))
    return ordered


def _executable(
    left: Sequence[StepWithEngine], engine: EngineSettings, done: Iterable[str]
) -> list[StepWithEngine]:
    """The steps that can be executed now with this engine: those that ask it, and those without an
    engine that these read."""
    ready, candidates = set(done), list[StepWithEngine]()
    for step, asks in left:
        reads = {upstream.id for upstream in step.upstream}
        if reads <= ready and asks in (None, engine):
            ready.add(step.id)
            candidates.append((step, asks))
    needed: set[str] = set()
    steps = []
    for step, asks in reversed(candidates):
        if asks is not None or step.id in needed:
            needed |= {upstream.id for upstream in step.upstream}
            steps.append((step, asks))
    return steps[::-1]


def with_scoring(phases: Sequence[Phase], plan: RunPlan) -> list[Phase]:
    """Let the last phase with an engine score, too, unless it holds GPUs or lacks a document:
    workers for scoring alone would take time to start."""
    if len(phases) > 1 and phases[-1].engine is None:
        *first, asking, scoring = phases
        holds_gpu = asking.engine is not None and asking.engine.gpus > 0
        if not holds_gpu and plan.is_within(scoring.execution.executed, asking.execution.executed):
            return [*first, replace(asking, steps=(*asking.steps, *scoring.steps))]
    return list(phases)
