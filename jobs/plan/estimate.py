"""The rehearsals of a sample, and what they come to over the whole corpus."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jobs.config import RunConfig
from jobs.plan.costs import MEASURES, Pass, Range, by_step, cost_of, ranges
from jobs.plan.disk import disk
from jobs.plan.former import Former
from jobs.plan.rehearsal import Placed, Rehearsal, Sampled
from jobs.plan.scale import SAMPLING_MARGIN, Knot, Numbers, memory_knot, question_knot, total
from jobs.plan.todo import Counted, Todo
from pipeline.engine import EngineSettings
from pipeline.simulated_engine import SimulatedSettings
from pipeline.steps import Step
from pipeline.store import Shards
from stages.fields import PROMPTS
from stages.planning import TEMPERS, Habits, PlanningEngine, Temper
from stages.token_counts import TokenCounts, token_counts

Costs = Mapping[str, Mapping[str, Range]]
"""Of one step: document -> question -> range."""
Times = Mapping[str, Mapping[str, int]]
"""Of one document: step -> question -> how many times it counts."""

_TRIED_TEXTS = 12  # by a tokenizer
_UNCACHED = ("extractive", "scripted")  # engines that keep nothing of earlier prompts


class Estimate:
    """The rehearsals, and what they come to over the whole corpus."""

    def __init__(
        self,
        config: RunConfig,
        placed: Placed,
        counted: Counted,
        sampled: Sequence[Sampled],
        like: Former | None,
    ) -> None:
        self.config, self.placed, self.counted, self.sampled = config, placed, counted, sampled
        self.like = like
        self.asking = [(step, engine) for step, engine in placed if engine and step.prompts]
        self._counts: dict[str, TokenCounts] = {}
        self.totals: dict[str, Numbers] = {}
        self.knots: dict[str, list[Knot]] = {}
        self.disk: dict[str, int] = {}

    def counts(self, settings: EngineSettings) -> TokenCounts:
        if repr(settings) not in self._counts:
            texts = [one.loaded.document.text for one in self.sampled[:_TRIED_TEXTS]]
            self._counts[repr(settings)] = token_counts(settings, texts)
        return self._counts[repr(settings)]

    def rehearse(self, source: Shards, folder: Path) -> None:
        """Three passes; afterwards `totals`, `knots` and `disk` are filled."""
        contexts = {step.id: context_of(engine) for step, engine in self.asking}
        methods = {step.id: (step.method, step.repeat) for step, _ in self.placed}
        passes: dict[str, Pass] = {}
        for temper in TEMPERS:
            rehearsal = Rehearsal(self.config, self.placed, self.sampled, folder / temper)
            rehearsal.run(source, temper, self._engine)
            passes[temper] = cost_of(rehearsal, contexts)
            if temper == "likely":
                likely = rehearsal
        costs = by_step(ranges(passes, methods))
        times = {one.todo.document_id: likely.times(one) for one in self.sampled}
        for step, engine in self.asking:
            self._scale(step, engine, costs.get(step.id, {}), times)
        self.disk = disk(likely, self.counted, self.config.questions_per_unit)

    def _engine(self, settings: EngineSettings, temper: Temper) -> PlanningEngine:
        habits = self.like.habits if self.like else Habits()
        if isinstance(settings, SimulatedSettings):
            habits = Habits(reply_tokens=dict.fromkeys(PROMPTS, settings.reply_tokens))
        return PlanningEngine(
            temper,
            habits,
            self.counts(settings),
            context_of(settings),
            getattr(settings, "thinking_tokens", 0),
            has_cache=settings.name not in _UNCACHED,
        )

    def _scale(
        self, step: Step, engine: EngineSettings, costs: Costs, times: Mapping[str, Times]
    ) -> None:
        """Fill the step's `knots` and `totals`, where it has something to do."""
        own = [(one.todo, times[one.todo.document_id].get(step.id, {})) for one in self.sampled]
        own = [(todo, asked) for todo, asked in own if asked]
        num_times = sum(todo.times.get(step.id, 0) for todo in self.counted.todo)
        if not own or not num_times:
            return
        found = [_knot(step, todo, costs.get(todo.document_id, {}), asked) for todo, asked in own]
        self.knots[step.id] = [knot for knot, _ in found]
        numbers = total(self.counted.todo, step.id, step.per_question, self.knots[step.id])
        is_whole = sum(sum(asked.values()) for _, asked in own) >= num_times
        margin = 0.0 if is_whole else SAMPLING_MARGIN
        calls = 0.0 if all(is_even for _, is_even in found) else margin
        tokens = (1 + margin) * (1 + self.counts(engine).may_be_off) - 1
        numbers = numbers.reshape(3, -1) * _spread(calls, tokens, self.config.max_problem_rate)
        if step.name == "gist":
            share = self.counted.distinct_share
            numbers = numbers * [[share], [share], [1.0]]
        self.totals[step.id] = numbers


def _knot(
    step: Step, todo: Todo, costs: Mapping[str, Range], asked: Mapping[str, int]
) -> tuple[Knot, bool]:
    if step.per_question:
        return question_knot(todo, costs, asked)
    cost = costs.get("", Range())
    return memory_knot(todo, [*cost.low, *cost.likely, *cost.high]), False


def _spread(calls: float, tokens: float, problems: float) -> Numbers:
    """What low, likely and high of every measure are multiplied by, which may be off by so much.

    Low leaves room for as many problems as a run may have: what fails is not gone on with.
    """
    wide = np.array([calls, *[tokens] * (len(MEASURES) - 1)])
    return np.stack([(1 - problems) / (1 + wide), np.ones(len(MEASURES)), 1 + wide])


def context_of(settings: EngineSettings) -> int | None:
    """What prompt and answer share, in tokens; null where only the model itself tells."""
    if settings.context_tokens is None:
        return None
    return settings.context_tokens - getattr(settings, "thinking_tokens", 0)
