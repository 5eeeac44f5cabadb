"""Phases: groups of steps that one engine can execute without waiting for another engine.

They follow from what the steps read and which engine each asks. A model is loaded once per GPU and
phase, and a run with one engine has one phase. A step without an engine belongs to the phase of the
steps that read it; if none of those asks an engine, to the last phase, after GPUs are released. If
none are held, `with_scoring` saves that phase an execution of its own.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobs.config.run_config import SECTIONS
from jobs.graph.run_plan import RunPlan, split
from jobs.graph.step_graph import StepWithEngine
from pipeline.asking.reader import num_slots
from pipeline.core.engine import EngineSettings
from pipeline.core.settings import ClusterSettings
from pipeline.files.storage import AnyPath
from pipeline.work.stage import ROLES, Role
from pipeline.work.units import Execution, Step, Work
from pipeline.worker.worker import MakeWorker, Start, Worker

if TYPE_CHECKING:
    from pipeline.cluster import Pool

_SCORING_DOCUMENTS = 2  # in flight per worker: one is loaded while the other is scored


@dataclass(frozen=True)
class Phase:
    """Steps that one engine executes; `section`: the config section of the engine."""

    name: str
    section: str
    engine: EngineSettings | None
    loading: tuple[Step, ...]  # documents and questions, which every phase reads
    steps: tuple[Step, ...]

    @property
    def start_timeout(self) -> float:
        """Seconds that the engine may take to start."""
        return self.engine.start_timeout if self.engine else 60.0

    @property
    def slots(self) -> int:
        """Concurrent requests of a worker; without an engine, documents."""
        return num_slots(self.engine) if self.engine else _SCORING_DOCUMENTS

    def with_upstream(self) -> dict[str, Step]:
        """The steps and all that they read directly, by id."""
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
        """The function that makes a worker in its process; `start` starts the phase's engine.

        The worker gets no RunConfig, whose import would take it a second.
        """
        steps = list(self.with_upstream().values())
        return functools.partial(
            Worker, run, launch, steps=steps, start=start, start_timeout=self.start_timeout
        )

    @property
    def execution(self) -> Execution:
        asking = frozenset(step.id for step in self.steps if step.prompts)
        own = frozenset(step.id for step in self.steps)
        return Execution(self.name, own, frozenset(self.with_upstream()), asking)

    def executions(
        self, plan: RunPlan, num_workers: Callable[[], int]
    ) -> Iterator[tuple[Execution, Work]]:
        """Each execution with its work; none without pending units.

        There are two if a document has several chunks of questions and several workers could share
        them: the first builds the memory, the second executes the chunks. Otherwise there is one.
        """
        whole = plan.work(self.execution)
        if whole.num_documents == 0:
            return
        if plan.has_chunks:
            of_questions = [step.id for step in self.with_upstream().values() if step.per_question]
            memory, chunks = split(self.execution, of_questions)
            first, second = plan.work(memory), plan.work(chunks)
            if second.num_documents > whole.num_documents and num_workers() > 1:
                if first.num_documents:
                    yield memory, first
                    chunks = replace(chunks, name=f"{self.name}: questions")
                yield chunks, second
                return
        yield self.execution, whole


def phases(steps_with_engines: Sequence[StepWithEngine]) -> list[Phase]:
    """The phases in order of execution. The two loading steps are in none.

    The next phase is of an engine that can execute all its remaining steps; if there is none, of
    the ready engine whose role is first in `ROLES`. So judges come last.
    """
    loading = tuple(step for step, _ in steps_with_engines if step.stage is None)
    engines = _by_role(steps_with_engines)
    done = {step.id for step in loading}
    left = [(step, engine) for step, engine in steps_with_engines if step.stage is not None]
    found: list[Phase] = []
    while any(engine is not None for _, engine in left):
        own = _next(left, engines, done)
        done |= {step.id for step, _ in own}
        left = [(step, engine) for step, engine in left if step.id not in done]
        found.append(_phase(loading, own, [phase.name for phase in found]))
    if left:
        steps = tuple(step for step, _ in left)
        found.append(Phase("scoring", "cluster", None, loading, steps))
    return found


def _next(
    left: Sequence[StepWithEngine], engines: Sequence[EngineSettings], done: Iterable[str]
) -> list[StepWithEngine]:
    ready = [(engine, mine) for engine in engines if (mine := _possible(left, engine, done))]
    for engine, mine in ready:
        if sum(own == engine for _, own in left) == sum(own == engine for _, own in mine):
            return mine
    return ready[0][1]


def _by_role(steps: Sequence[StepWithEngine]) -> list[EngineSettings]:
    """The engines without duplicates, in the order of their first role in `ROLES`."""
    asking = [(step.stage.role, engine) for step, engine in steps if engine and step.stage]
    asking.sort(key=lambda one: ROLES.index(one[0]))
    return list({repr(engine): engine for _, engine in asking}.values())


def _possible(
    left: Sequence[StepWithEngine], engine: EngineSettings, done: Iterable[str]
) -> list[StepWithEngine]:
    """The steps that can be executed now with this engine alone: those that ask it, and those
    without an engine that they read. Empty where no step that asks it is ready."""
    ready, found = set(done), list[StepWithEngine]()
    for step, own in left:
        reads = {upstream.id for upstream in step.upstream}
        if reads <= ready and (own is None or own == engine):
            ready.add(step.id)
            found.append((step, own))
    needed: set[str] = set()
    kept = []
    for step, own in reversed(found):
        if own is not None or step.id in needed:
            needed |= {upstream.id for upstream in step.upstream}
            kept.append((step, own))
    return kept[::-1]


_NAMES: Mapping[Role, str] = {
    "reader": "reading", "memory": "building memories", "extractor": "extracting",
    "query_expander": "inferring times", "judge": "rating",
}  # fmt: skip


def _phase(loading: tuple[Step, ...], own: Sequence[StepWithEngine], names: Sequence[str]) -> Phase:
    roles = {step.stage.role for step, engine in own if engine and step.stage}
    role = next(role for role in ROLES if role in roles)
    engine = next(engine for _, engine in own if engine)
    times = sum(name.split(" (")[0] == _NAMES[role] for name in names)
    name = f"{_NAMES[role]} ({times + 1})" if times else _NAMES[role]
    return Phase(name, SECTIONS[role], engine, loading, tuple(step for step, _ in own))


def with_scoring(phases: Sequence[Phase], plan: RunPlan) -> list[Phase]:
    """`phases`, with scoring merged into the phase before it if that holds no GPU and has work for
    every document to be scored: no engine starts for documents that ask it nothing.

    A worker takes more than a second of CPU to start, which a small run would pay twice. No GPU is
    held for scoring: if the engine holds one, scoring is a phase of its own, on CPUs.
    """
    if len(phases) < 2 or phases[-1].engine is not None:
        return list(phases)
    *others, asking, scoring = phases
    holds_gpu = asking.engine is not None and asking.engine.gpus > 0
    if holds_gpu or not plan.is_within(scoring.execution.own, asking.execution.own):
        return list(phases)
    return [*others, replace(asking, steps=(*asking.steps, *scoring.steps))]
