"""The plan of a run: the remaining work, its cost, and the assumptions of the numbers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jobs.graph.manifest import stage_names
from jobs.graph.phases import Phase
from jobs.graph.preparation import prepare
from jobs.graph.resolved_run import ResolvedRun
from jobs.plan.cost_rates import Options, Reference, num_engines, rates_of, reference
from jobs.plan.count_calls import DryRunShards
from jobs.plan.estimate import MEASURES, NO_COST, Estimate, Numbers, assumptions, estimate
from jobs.report.planned_against_made import calls_before_plan
from jobs.run.compatibility import merge_with_stored_run
from pipeline.files.place import as_path
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import check_layout
from pipeline.work.steps import Step

Json = dict[str, Any]


def make_plan(run: ResolvedRun, options: Options, warn: Callable[[str], None]) -> Json:
    """The plan of the remaining work of a run whose embedder is a `NoEmbedder`, as JSON. Reads the
    warehouse and writes nothing.

    Raises UsageError if corpus or options cannot be used.
    """
    folder = RunFolder(as_path(run.config.warehouse), run.name)
    check_layout(folder.warehouse)
    run = merge_with_stored_run(run, folder)
    like = reference(folder.warehouse, options.like, run.config) if options.like else None
    prepared = prepare(run, folder.warehouse, warn, DryRunShards(folder.warehouse))
    estimated = estimate(prepared, like)
    steps = [_step(step, estimated.costs[step.id], options) for step in run.steps
             if step.id in estimated.costs]  # fmt: skip
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
        "stages": [_sum(stage, own) for stage in stage_names(run.steps)
                   if (own := [step for step in steps if step["stage"] == stage])],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimated.disk,
        "before": calls_before_plan(folder, done) if steps else {},
        "assumptions": assumptions(prepared, estimated, like, phases) if steps else [],
    }  # fmt: skip


def _step(step: Step, costs: Numbers, options: Options) -> Json:
    about = {"step_id": step.id, "stage": step.name, "method": step.method, "repeat": step.repeat}
    expected: Json = dict(zip(MEASURES, map(int, costs.round()), strict=True))
    budgets: Json = {"reply_tokens": expected.pop("budget_tokens")}
    prompt = expected["prompt_tokens"], expected["uncached_tokens"]
    for own in (expected, budgets):
        own["money"] = options.money(*prompt, own["reply_tokens"])
    return {**about, "expected": expected, "budgets": budgets}


def _sum(stage: str, steps: Sequence[Json]) -> Json:
    """The sums over all steps of a stage."""
    totals: Json = {"stage": stage}
    for kind in ("expected", "budgets") if steps else ():
        columns = {name: [step[kind][name] for step in steps] for name in steps[0][kind]}
        totals[kind] = {n: None if None in own else sum(own) for n, own in columns.items()}
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
        costs = sum(estimated.costs.get(step.id, NO_COST) for step in phase.steps)
        own = dict(zip(MEASURES, np.asarray(costs).tolist(), strict=True))
        replies = {"expected": own["reply_tokens"], "budgets": own["budget_tokens"]}
        seconds = {n: rates.seconds(own["uncached_tokens"], r) for n, r in replies.items()}
        found["hours"] = {name: s / engines / 3600 for name, s in seconds.items()}
        found["gpu_hours"] = {name: s * engine.gpus / 3600 for name, s in seconds.items()}
    return found
