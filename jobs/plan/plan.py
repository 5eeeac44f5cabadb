"""The plan of a run: what is left to do, what that takes, and what the numbers rest on."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jobs.compatibility import grown
from jobs.config import RunConfig
from jobs.phases import Phase
from jobs.plan.assumptions import assumptions
from jobs.plan.counting import Copies, NoEmbedder
from jobs.plan.estimate import Estimate, Warn
from jobs.plan.former import former, points_of
from jobs.plan.outcome import made_before
from jobs.plan.pilot import choose
from jobs.plan.rates import Options, num_engines, rates_of
from jobs.plan.scaling import MEASURES
from jobs.preparation import Prepared, prepare
from pipeline.place import place
from pipeline.steps import Step
from pipeline.store.runs import RunFolder

_COSTS = ("expected", "at_most")


def make_plan(
    config: RunConfig, options: Options, warn: Warn, pilot_run: str | None = None
) -> dict[str, Any]:
    """The plan of what is left to do, as JSON. Reads the warehouse and writes nothing.

    `pilot_run`: a run of the corpus's first documents, whose calls and seconds are scaled.
    Raises UsageError where config, corpus or options are of no use.
    """
    folder = RunFolder(place(config.warehouse), config.run_name())
    config = grown(config, folder)
    run = pilot_run or options.like
    like = former(folder.warehouse, run, config) if run else None
    prepared = _prepared(config, folder, warn)
    measured = {}
    if pilot_run:
        documents = RunFolder(folder.warehouse, pilot_run).planned("document_id")
        measured = points_of(prepared, documents)
    estimate = Estimate(prepared, choose(prepared), like, measured)
    if estimate.pilot.works:
        estimate.count()
    return _document(estimate, options, folder, pilot_run)


def _prepared(config: RunConfig, folder: RunFolder, warn: Warn) -> Prepared:
    """The run prepared, its corpus read and not committed; nothing is embedded."""
    none = NoEmbedder(**config.embedder.model_dump())
    config = config.model_copy(update={"embedder": none})
    return prepare(config, folder.warehouse, warn, Copies(folder.warehouse))


def _document(
    estimate: Estimate, options: Options, folder: RunFolder, pilot_run: str | None
) -> dict[str, Any]:
    prepared, works = estimate.prepared, estimate.pilot.works
    readable = [key for key in prepared.keys if not key.is_bad]
    asking = [i for i in estimate.steps if i in estimate.at_most and estimate.at_most[i].any()]
    steps = [_step(estimate, step_id, options) for step_id in asking]
    phases = [_phase(estimate, p, options) for p in prepared.phases if p.engine and steps]
    done = [u for u in prepared.planned() if u.is_done and estimate.steps[u.step_id].prompts]
    return {
        "run": folder.path.name,
        "warehouse": str(folder.warehouse),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "documents": len(readable),
            "questions": sum(not q.is_bad for key in readable for q in key.questions),
            "words": sum(key.num_words for key in readable),
            "documents_to_do": len(works),
        },
        "stages": [_sum(stage, [step for step in steps if step["stage"] == stage])
                   for stage in _in_order(estimate.steps.values(), steps)],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimate.disk,
        "before": made_before(folder, done) if works else {},
        "assumptions": assumptions(estimate, phases, pilot_run) if works else [],
    }  # fmt: skip


def _step(estimate: Estimate, step_id: str, options: Options) -> dict[str, Any]:
    step = estimate.steps[step_id]
    found: dict[str, Any] = {
        "step_id": step_id,
        "stage": step.name,
        "method": step.method,
        "repeat": step.repeat,
    }
    rounded = (np.round(estimate.expected[step_id]),
               np.ceil(np.round(estimate.at_most[step_id], 6)))  # fmt: skip
    for name, numbers in zip(_COSTS, rounded, strict=True):
        cost = dict(zip(MEASURES, map(int, numbers), strict=True))
        found[name] = {**cost, "money": options.money(*numbers[1:])}
    return found


def _in_order(placed: Iterable[Step], steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """The stages that have something to ask, each after all it reads."""
    depths: dict[str, int] = {}
    for step in placed:
        own = 1 + max((depths[upstream.name] for upstream in step.upstream), default=0)
        depths[step.name] = max(own, depths.get(step.name, 0))
    return sorted({step["stage"] for step in steps}, key=lambda stage: depths[stage])


def _sum(stage: str, steps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All steps of a stage together."""
    own = list(steps)
    totals: dict[str, Any] = {"stage": stage}
    for name in _COSTS:
        columns = {m: [step[name][m] for step in own] for m in (*MEASURES, "money")}
        totals[name] = {m: None if None in column else sum(column) for m, column in columns.items()}
    return totals


def _phase(estimate: Estimate, phase: Phase, options: Options) -> dict[str, Any]:
    """Its engines, their rates, and the hours (null where no rate is known)."""
    engine = phase.engine
    assert engine is not None
    own = [step.id for step in phase.steps if step.id in estimate.expected]
    sums = {name: np.sum([getattr(estimate, name)[i] for i in own] or [np.zeros(4)], axis=0)
            for name in _COSTS}  # fmt: skip
    calls, prompt, *_ = sums["expected"]
    rates = rates_of(engine, options, estimate.like, prompt / calls if calls else 0.0)
    engines = num_engines(engine, options.gpus)
    found: dict[str, Any] = {
        "phase": phase.name,
        "engine": engine.title,
        "engines": engines,
        "gpus": engines * engine.gpus,
        "prefill_tokens_per_second": rates and rates.prefill,
        "decode_tokens_per_second": rates and rates.decode,
        "rates": rates and rates.how,
        "hours": None,
        "gpu_hours": None,
    }
    if rates:
        seconds = {n: rates.seconds(float(s[2]), float(s[3])) for n, s in sums.items()}
        found["hours"] = {name: s / engines / 3600 for name, s in seconds.items()}
        found["gpu_hours"] = {name: s * engine.gpus / 3600 for name, s in seconds.items()}
    return found
