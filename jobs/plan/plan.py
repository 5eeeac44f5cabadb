"""The plan of a run: the remaining work, its cost, and the assumptions of the numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jobs.graph.phases import Phase
from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.plan.assumptions import assumptions
from jobs.plan.cost_rates import Options, num_engines, rates_of
from jobs.plan.count_calls import MEASURES, DryRunShards, NoEmbedder
from jobs.plan.estimate import Estimate, estimate
from jobs.plan.reference import Reference, reference
from jobs.report.planned_against_made import calls_before_plan
from jobs.run.compatibility import merge_with_stored_run
from pipeline.files.place import as_path
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import check_layout
from pipeline.work.steps import Step

_COSTS = ("expected", "at_most")
Json = dict[str, Any]


def make_plan(run: ResolvedRun, options: Options, warn: Callable[[str], None]) -> Json:
    """The plan of the remaining work, as JSON. Reads the warehouse and writes nothing.

    Raises UsageError if corpus or options cannot be used.
    """
    folder = RunFolder(as_path(run.config.warehouse), run.name)
    check_layout(folder.warehouse)
    run = merge_with_stored_run(run, folder)
    like = reference(folder.warehouse, options.like, run.config) if options.like else None
    without_model = NoEmbedder(**run.config.embedder.model_dump())
    run = resolve(run.config.model_copy(update={"embedder": without_model}))
    prepared = prepare(run, folder.warehouse, warn, DryRunShards(folder.warehouse))
    estimated = estimate(prepared, like)
    steps = [_step(step, estimated, options) for step in run.steps
             if estimated.at_most.get(step.id, np.zeros(1)).any()]  # fmt: skip
    phases = [_phase(p, estimated, options, like) for p in run.phases if p.engine and steps]
    readable = [key for key in prepared.keys if not key.is_bad]
    asking = {step.id for step in run.steps if step.prompts}
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
                   for stage in _in_order(run.steps, steps)],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimated.disk,
        "before": calls_before_plan(folder, done) if steps else {},
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


def _in_order(ordered: Iterable[Step], steps: Sequence[Json]) -> list[str]:
    """The stages that have remaining calls, each after all it reads."""
    depths: dict[str, int] = {}
    for step in ordered:
        own = 1 + max((depths[upstream.name] for upstream in step.upstream), default=0)
        depths[step.name] = max(own, depths.get(step.name, 0))
    return sorted({step["stage"] for step in steps}, key=lambda stage: depths[stage])


def _sum(stage: str, steps: Iterable[Mapping[str, Any]]) -> Json:
    """The sums over all steps of a stage."""
    own = list(steps)
    totals: Json = {"stage": stage}
    for name in _COSTS:
        columns = {m: [step[name][m] for step in own] for m in (*MEASURES, "money")}
        totals[name] = {m: None if None in column else sum(column) for m, column in columns.items()}
    return totals


def _phase(phase: Phase, estimated: Estimate, options: Options, like: Reference | None) -> Json:
    """A phase's engines, their rates, and the hours (None if no rate is known)."""
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
