"""The sampled documents through all stages of a run, with an engine that only counts.

In this process, without Ray, in a folder of its own: the warehouse is read, never written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from jobs.config import RunConfig
from jobs.phases import phases
from jobs.plan.todo import SAMPLED, Counted, Todo, length_class, needing_evidence, weight
from pipeline.ask import Reader
from pipeline.embedder import EmbedderSettings, Kind, Vectors
from pipeline.engine import EngineSettings
from pipeline.place import commit
from pipeline.records import Question
from pipeline.steps import Committed, DocumentKey, Step, Unit, plan_document
from pipeline.store import Shards
from pipeline.worker import Worker
from stages.corpora.loaded import Loaded
from stages.engines import reader_of
from stages.planning import PlanningEngine, Temper

Placed = Sequence[tuple[Step, EngineSettings | None]]
MakeEngine = Callable[[EngineSettings, Temper], PlanningEngine]

# Of all sampled documents together: a rehearsal takes as long as there are questions times steps,
# and as words times questions. Books are known well from fewer documents than short texts.
_QUESTION_STEPS, _WORDS, _QUESTION_WORDS = 1000, 250_000, 750_000
_LEAST_DOCUMENTS, _LEAST_QUESTIONS, _MOST_QUESTIONS = 4, 2, 36
_NO_DEATHS = "plan"  # the launch's name; nobody dies


@dataclass(frozen=True)
class Sampled:
    """A document with some of its questions, and its units in every step."""

    todo: Todo
    loaded: Loaded  # with the sampled questions alone
    units: Sequence[Unit]


class NoEmbedder(EmbedderSettings):
    """Vectors that say nothing: a plan runs no model. Which pages are nearest is then chance."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


def sample(
    config: RunConfig, steps: Sequence[Step], committed: Committed, counted: Counted
) -> list[Sampled]:
    """Documents of all lengths among those with something to do, and questions of each."""
    num_steps = sum(step.per_question and bool(step.prompts) for step in steps)
    num_asked = min(_MOST_QUESTIONS, _QUESTION_STEPS // max(1, num_steps))
    wanted = min(SAMPLED, num_asked // _LEAST_QUESTIONS)
    chosen = [todo for kind in _kinds(counted.todo) for todo in _spread(kind, counted, wanted)]
    words = sum(todo.num_words for todo in chosen)
    most = min(num_asked // max(1, len(chosen)), _QUESTION_WORDS // max(1, words))
    most = max(_LEAST_QUESTIONS, most)
    found = []
    for todo in chosen:
        loaded = counted.kept[todo.document_id]
        asked = _some(_unanswered(config, steps, committed, loaded), most)
        loaded = replace(loaded, questions=tuple(asked))
        key = DocumentKey.of(loaded.document, asked)
        units = plan_document(steps, key, committed, config.questions_per_unit)
        found.append(Sampled(todo, loaded, units))
    return found


def _kinds(todo: Sequence[Todo]) -> list[list[Todo]]:
    kinds: dict[frozenset[str], list[Todo]] = {}
    for one in todo:
        kinds.setdefault(one.kind, []).append(one)
    return list(kinds.values())


def _spread(todo: Sequence[Todo], counted: Counted, wanted: int) -> Iterator[Todo]:
    """Of the documents kept about `wanted` at even distances, by length, and the ends."""
    ordered = sorted(todo, key=lambda one: (one.num_words, one.document_id))
    left: dict[int, list[Todo]] = {}
    for one in ordered:
        if one.document_id in counted.kept:
            left.setdefault(length_class(one.num_words), []).append(one)
    middle = ordered[len(ordered) // 2].num_words
    num = max(_LEAST_DOCUMENTS, min(wanted, _WORDS // max(1, middle)))
    for place in np.linspace(0, len(ordered) - 1, min(num, len(ordered))):
        own = left.get(length_class(ordered[round(float(place))].num_words))
        if own:
            yield own.pop()


def _unanswered(
    config: RunConfig, steps: Sequence[Step], committed: Committed, loaded: Loaded
) -> list[Question]:
    """The questions with something to do in some step; all where that is the memory alone."""
    asked = [question for question in loaded.questions if question.problem is None]
    if not any(committed.units.values()):
        return asked
    key = DocumentKey.of(loaded.document, asked)
    planned = plan_document(steps, key, committed, config.questions_per_unit)
    loading = {step.id for step in steps if step.stage is None}
    open_units = [u for u in planned if not u.is_done and u.step_id not in loading]
    pending = {question_id for unit in open_units for question_id in unit.inputs}
    return [question for question in asked if question.question_id in pending]


def _some(questions: Sequence[Question], most: int) -> list[Question]:
    if len(questions) <= most:
        return list(questions)
    places = np.linspace(0, len(questions) - 1, most)
    return [questions[round(float(place))] for place in places]


class Rehearsal:
    """One pass over the sample in one temper; `shards` then hold what a run would have written."""

    def __init__(
        self, config: RunConfig, placed: Placed, sampled: Sequence[Sampled], folder: Path
    ) -> None:
        self.shards = Shards(folder)
        self.steps = {step.id: _without_models(step) for step, _ in placed}
        self.sampled = sampled
        self._config, self._placed, self._folder = config, placed, folder

    def run(self, source: Shards, temper: Temper, make_engine: MakeEngine) -> None:
        """Every stage of every sampled document; `source` holds the rows that stand already."""
        for one in self.sampled:
            self._load(source, one)
        for phase in phases(self._placed):
            if phase.engine is not None:  # scoring asks nobody
                how = (phase.engine, self._config.family_folder, self._config.reply_format)
                reader = reader_of(make_engine(phase.engine, temper), *how)
                asyncio.run(self._work(phase.steps, partial(_started, reader)))

    def _load(self, source: Shards, one: Sampled) -> None:
        """What the document's stages read: its own rows, and those of units that stand."""
        for unit in one.units:
            step = self.steps[unit.step_id]
            if step.table == "documents":
                self.shards.commit(step.table, step, unit, [one.loaded.document])
            elif step.table == "questions":
                rows = [q for q in one.loaded.questions if q.question_id in unit.inputs]
                self.shards.commit(step.table, step, unit, rows)
            elif unit.is_done:
                path = (step.table, step.id, unit.unit)
                commit(self.shards.path(*path), source.path(*path).read_bytes())

    async def _work(self, steps: Sequence[Step], start: Callable[[], Awaitable[Reader]]) -> None:
        run = self._folder / "runs" / "plan"
        worker = Worker(run, _NO_DEATHS, "plan", list(self.steps.values()), start, 60.0)
        own = {step.id for step in steps}
        work = []
        for one in self.sampled:
            units = [u if u.step_id in own else replace(u, is_done=True) for u in one.units]
            if any(not unit.is_done for unit in units):
                work.append(worker.work(one.todo.document_id, units))
        await asyncio.gather(*work)

    def times(self, one: Sampled) -> Mapping[str, Mapping[str, int]]:
        """By step, how many times each question it still has to do counts; "" is the document."""
        asked = {question.question_id: question for question in one.loaded.questions}
        found: dict[str, dict[str, int]] = {}
        gold = needing_evidence(list(self.steps.values()))
        for unit in one.units:
            step = self.steps[unit.step_id]
            if unit.is_done or step.stage is None:
                continue
            own = found.setdefault(step.id, {})
            if step.per_question:
                own |= {i: weight(step, asked[i], gold) for i in unit.inputs}
            else:
                own[""] = 1
        return found


async def _started(reader: Reader) -> Reader:
    return reader


def _without_models(step: Step) -> Step:
    """The same step, by name too, that embeds nothing."""
    embedder = getattr(step.stage, "embedder", None)
    if step.stage is None or embedder is None:
        return step
    none = NoEmbedder(**embedder.model_dump())
    return replace(step, stage=step.stage.model_copy(update={"embedder": none}))
