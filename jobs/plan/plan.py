"""The plan of a run: what is to do, what it takes, and what that rests on."""

import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.config import RunConfig
from jobs.grow import grown
from jobs.plan.costs import MEASURES
from jobs.plan.estimate import Estimate, context_of
from jobs.plan.former import former
from jobs.plan.hours import Share, hours, num_engines
from jobs.plan.rates import RateOptions, refuse_useless
from jobs.plan.rehearsal import sample
from jobs.plan.scale import SAMPLING_MARGIN, Numbers
from jobs.plan.stood import stood
from jobs.plan.todo import count
from jobs.plan.weights import curves
from jobs.steps import run_steps
from pipeline.place import place
from pipeline.store import Shards
from pipeline.store.runs import RunFolder


@dataclass(frozen=True)
class StepPlan:
    """One step that asks a model. Every number is low, likely, high; tokens are the engine's."""

    stage: str
    method: str | None
    repeat: int
    calls: tuple[float, float, float]
    prompt_tokens: tuple[float, float, float]
    uncached_tokens: tuple[float, float, float]  # of the prompts', with a prefix cache
    reply_tokens: tuple[float, float, float]


@dataclass(frozen=True)
class Plan:
    """What plan.json holds. `stood` are the calls that were made before it, by step; `curves` what
    documents weigh in a phase, by their words; `disk` bytes by table."""

    run: str
    warehouse: str
    made_at: str
    corpus: Mapping[str, int]
    sample: Mapping[str, Any]
    tokens: str
    steps: Mapping[str, StepPlan]
    phases: tuple[Mapping[str, Any], ...]
    disk: Mapping[str, int]
    stood: Mapping[str, Mapping[str, int]]
    curves: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def has_work(self) -> bool:
        return bool(self.corpus["documents_to_do"])


def make_plan(config: RunConfig, options: RateOptions) -> Plan:
    """The plan of what is still to do. Reads the warehouse and writes nothing.

    Raises UsageError where config, corpus or options are of no use.
    """
    refuse_useless(options)
    num_engines(config.engine, options.gpus)
    folder = RunFolder(place(config.warehouse), config.run_name())
    config = grown(config, folder)
    like = former(folder.warehouse, options.like, config) if options.like else None
    placed = run_steps(config)
    steps = [step for step, _ in placed]
    shards = Shards(folder.warehouse)
    committed = shards.committed(steps)
    counted = count(config, steps, committed)
    sampled = sample(config, steps, committed, counted)
    estimate = Estimate(config, placed, counted, sampled, like)
    with tempfile.TemporaryDirectory(prefix="gistmill-plan-") as temporary:
        estimate.rehearse(shards, Path(temporary))
    return _plan(config, options, estimate, folder)


def _plan(config: RunConfig, options: RateOptions, estimate: Estimate, folder: RunFolder) -> Plan:
    counted, steps = estimate.counted, [step for step, _ in estimate.placed]
    planned = {
        step.id: StepPlan(step.name, step.method, step.repeat, *_columns(estimate.totals[step.id]))
        for step, _ in estimate.asking
        if step.id in estimate.totals
    }
    shares = _shares(estimate)
    phases = hours(shares, options, estimate.like)
    num_sampled = sum(len(one.loaded.questions) for one in estimate.sampled)
    notes = _notes(config, estimate)
    return Plan(
        run=folder.path.name,
        warehouse=str(folder.warehouse),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        corpus={
            "documents": counted.num_documents,
            "questions": counted.num_questions,
            "words": counted.num_words,
            "documents_to_do": len(counted.todo),
            "words_to_do": sum(one.num_words for one in counted.todo),
        },
        sample={
            "documents": len(estimate.sampled),
            "questions": num_sampled,
            "margin": SAMPLING_MARGIN if len(estimate.sampled) < len(counted.todo) else 0.0,
        },
        tokens=estimate.counts(config.engine).how,
        steps=planned,
        phases=tuple(phases),
        disk=estimate.disk,
        stood=stood(folder.warehouse, steps, counted.done),
        curves=curves(estimate.knots, estimate.asking, estimate.sampled, phases),
        notes=tuple(notes),
    )


def _columns(numbers: Numbers) -> list[tuple[float, float, float]]:
    """By measure, whole numbers: low, likely, high."""
    return [
        (math.floor(low), round(float(likely)), math.ceil(high)) for low, likely, high in numbers.T
    ]


def _shares(estimate: Estimate) -> list[Share]:
    """What each engine has to do."""
    found: dict[str, Share] = {}
    for step, engine in estimate.asking:
        assert step.stage is not None
        share = found.setdefault(repr(engine), Share(step.stage.phase, engine))
        if step.id in estimate.totals:
            share.numbers = share.numbers + estimate.totals[step.id]
    return list(found.values())


def _notes(config: RunConfig, estimate: Estimate) -> list[str]:
    found = []
    if estimate.counted.distinct_share < 1:
        percent = 100 * estimate.counted.distinct_share
        found.append(f"{percent:.0f}% of the words are in distinct sessions; gists are shared")
    if context_of(config.engine) is None:
        found.append("engine.context_tokens is not set: no prompt is taken to be too long")
    if any(step.name == "index" for step, _ in estimate.placed):
        found.append("the time of embedding pages or gists is not in the hours")
    return found


def document(plan: Plan) -> dict[str, Any]:
    """As JSON."""
    return {**asdict(plan), "stages": stages_of(plan.steps)}


def stages_of(steps: Mapping[str, StepPlan]) -> list[dict[str, Any]]:
    """The steps of a stage together."""
    order = ["paginate", "gist", "look_up", "answer", "rate"]
    found: dict[str, list[StepPlan]] = defaultdict(list)
    for step in steps.values():
        found[step.stage].append(step)
    return [
        {
            "stage": stage,
            **{m: [sum(getattr(s, m)[i] for s in found[stage]) for i in range(3)]
               for m in MEASURES},
        }
        for stage in sorted(found, key=order.index)
    ]  # fmt: skip
