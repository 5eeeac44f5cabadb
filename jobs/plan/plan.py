"""The plan of a run: what is left to do, what that takes, and what the numbers rest on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jobs.compatibility import grown
from jobs.phases import Phase
from jobs.plan.assumptions import assumptions
from jobs.plan.counting import MEASURES, Copies, NoEmbedder
from jobs.plan.estimate import Estimate, estimate
from jobs.plan.outcome import made_before
from jobs.plan.rates import Options, num_engines, rates_of
from jobs.plan.reference import Reference, reference
from jobs.preparation import prepare
from jobs.run_config import RunConfig
from pipeline.place import place
from pipeline.steps import Step
from pipeline.store.layout import check_layout
from pipeline.store.runs import RunFolder

_COSTS = ("expected", "at_most")
Json = dict[str, Any]


def make_plan(config: RunConfig, options: Options, warn: Callable[[str], None]) -> Json:
    """The plan of what is left to do, as JSON. Reads the warehouse and writes nothing.

    Raises UsageError where config, corpus or options are of no use.
    """
    folder = RunFolder(place(config.warehouse), config.run_name())
    check_layout(folder.warehouse)
    config = grown(config, folder)
    like = reference(folder.warehouse, options.like, config) if options.like else None
    without_model = NoEmbedder(**config.embedder.model_dump())
    config = config.model_copy(update={"embedder": without_model})
    prepared = prepare(config, folder.warehouse, warn, Copies(folder.warehouse))
    estimated = estimate(prepared, like)
    steps = [_step(step, estimated, options) for step in prepared.steps
             if estimated.at_most.get(step.id, np.zeros(1)).any()]  # fmt: skip
    phases = [_phase(p, estimated, options, like) for p in prepared.phases if p.engine and steps]
    readable = [key for key in prepared.keys if not key.is_bad]
    asking = {step.id for step in prepared.steps if step.prompts}
    done = [unit for unit in prepared.planned() if unit.is_done and unit.step_id in asking]
    return {
        "run": folder.path.name,
        "warehouse": str(folder.warehouse),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "documents": len(readable),
            "questions": sum(not q.is_bad for key in readable for q in key.questions),
            "words": sum(key.num_words for key in readable),
            "documents_to_do": estimated.pilot.num_documents,
        },
        "stages": [_sum(stage, [step for step in steps if step["stage"] == stage])
                   for stage in _in_order(prepared.steps, steps)],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimated.disk,
        "before": made_before(folder, done) if steps else {},
        "assumptions": assumptions(prepared, estimated, like, phases) if steps else [],
    }  # fmt: skip


def _step(step: Step, estimated: Estimate, options: Options) -> Json:
    found: Json = {
        "step_id": step.id, "stage": step.name, "method": step.method, "repeat": step.repeat,
    }  # fmt: skip
    rounded = (np.round(estimated.expected[step.id]),
               np.ceil(np.round(estimated.at_most[step.id], 6)))  # fmt: skip
    for name, numbers in zip(_COSTS, rounded, strict=True):
        cost = dict(zip(MEASURES, map(int, numbers), strict=True))
        found[name] = {**cost, "money": options.money(*numbers[1:])}
    return found


def _in_order(placed: Iterable[Step], steps: Sequence[Json]) -> list[str]:
    """The stages that have something to ask, each after all it reads."""
    depths: dict[str, int] = {}
    for step in placed:
        own = 1 + max((depths[upstream.name] for upstream in step.upstream), default=0)
        depths[step.name] = max(own, depths.get(step.name, 0))
    return sorted({step["stage"] for step in steps}, key=lambda stage: depths[stage])


def _sum(stage: str, steps: Iterable[Mapping[str, Any]]) -> Json:
    """All steps of a stage together."""
    own = list(steps)
    totals: Json = {"stage": stage}
    for name in _COSTS:
        columns = {m: [step[name][m] for step in own] for m in (*MEASURES, "money")}
        totals[name] = {m: None if None in column else sum(column) for m, column in columns.items()}
    return totals


def _phase(phase: Phase, estimated: Estimate, options: Options, like: Reference | None) -> Json:
    """Its engines, their rates, and the hours (null where no rate is known)."""
    assert phase.engine is not None
    engine, rates = phase.engine, rates_of(phase.engine, options, like)
    engines = num_engines(engine, options.gpus)
    found: Json = {
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
        own = [step.id for step in phase.steps if step.id in estimated.at_most]
        sums = {name: sum((getattr(estimated, name)[i] for i in own), np.zeros(len(MEASURES)))
                for name in _COSTS}  # fmt: skip
        seconds = {n: rates.seconds(float(s[2]), float(s[3])) for n, s in sums.items()}
        found["hours"] = {name: s / engines / 3600 for name, s in seconds.items()}
        found["gpu_hours"] = {name: s * engine.gpus / 3600 for name, s in seconds.items()}
    return found
