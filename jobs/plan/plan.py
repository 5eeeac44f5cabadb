"""`gistmill plan`: the remaining work of a run, its cost, and the assumptions of the numbers, made,
stored with the run and printed on one screen."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jobs.config.run_config import RunConfig
from jobs.graph.loading import chosen_documents
from jobs.graph.manifest import stage_names
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.read_run import read_config
from jobs.graph.resolved_run import ResolvedRun, resolve
from jobs.output.cells import Heading, Part, Table, counted
from jobs.output.print_tables import print_found
from jobs.plan.cost_rates import Options, Reference, num_engines, rates_of, reference
from jobs.plan.estimate import MEASURES, NO_COST, Estimate, Numbers, assumptions, estimate
from jobs.plan.pilot import DryRunShards, NoEmbedder
from jobs.report.planned_against_made import calls_before_plan
from jobs.run.compatibility import merge_with_stored_run
from jobs.run.launch import INCOMPLETE
from jobs.run.launch import run as execute
from pipeline.core.engine import Price
from pipeline.core.errors import UsageError
from pipeline.files.named_paths import refuse_unreachable_path, unwritable
from pipeline.files.place import as_path
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import check_layout
from pipeline.work.steps import Step
from pipeline.work.units import Unit

_PILOT = "pilot="
Json = dict[str, Any]
Warn = Callable[[str], None]


def show_plan(words: Sequence[str], options: Options, as_json: bool, warn: Warn) -> None:
    """Print the plan; store it as runs/<name>/plan.json if there is remaining work.

    `words` are those of a run; `pilot=N` among them runs so many documents first, and the rest is
    planned by their reply lengths and speed.
    """
    config = read_config([word for word in words if not word.startswith(_PILOT)])
    options.check(config.engine)
    for number in [word.removeprefix(_PILOT) for word in words if word.startswith(_PILOT)][-1:]:
        options = dataclasses.replace(options, like=_run_pilot(config, number, warn))
    without_model = NoEmbedder(**config.embedder.model_dump())
    plan = make_plan(resolve(config.model_copy(update={"embedder": without_model})), options, warn)
    where = "not kept"
    if plan["stages"] and not unwritable(as_path(plan["warehouse"])):
        with refuse_unreachable_path(as_path(plan["warehouse"]), "warehouse"):
            RunFolder(plan["warehouse"], plan["run"]).write_plan(plan)
        where = f"kept in {plan['warehouse']}/runs/{plan['run']}/plan.json"
    print_found(plan, lambda plan: [*_parts(plan), f"run {plan['run']}: {where}"], as_json)


def _run_pilot(config: RunConfig, number: str, warn: Warn) -> str:
    """Run the first documents into the same warehouse, as a run of its own; returns its name.

    Raises UsageError if there are not so many, or the pilot does not complete.
    """
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(f"pilot={number}: name how many documents to run, 1 or more")
    there = sum(not one.document.skipped for one in chosen_documents(config))
    if int(number) > there:
        raise UsageError(f"pilot={number}: there are {there} documents; name fewer")
    first = {"sample" if config.sample else "limit": int(number)}
    name = f"{resolve(config).name}-pilot{number}"
    outcome = execute(resolve(config.model_copy(update={**first, "run": name})), warn)
    for complaint in outcome.complaints:
        warn(complaint)
    if outcome.exit_code == INCOMPLETE:
        raise UsageError(f"pilot={number}: not complete; the same command goes on from here")
    return name


def make_plan(run: ResolvedRun, options: Options, warn: Warn) -> Json:
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
    steps = [_step(step, estimated.costs[step.id], options.price_for(engine))
             for step, engine in run.steps_with_engines
             if engine and step.id in estimated.costs]  # fmt: skip
    phases = [_phase(p, estimated, options, like) for p in run.phases if p.engine and steps]
    readable = (document for document in prepared.plan.documents() if not document.is_bad)
    sizes = np.array([(1, one.num_questions, one.num_words) for one in readable] or [(0, 0, 0)])
    documents, questions, words = map(int, sizes.sum(axis=0))
    return {
        "run": folder.path.name,
        "warehouse": str(folder.warehouse),
        "settings_sha": run.settings_sha,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": {
            "documents": documents,
            "questions": questions,
            "words": words,
            "documents_to_do": estimated.pilot.num_documents,
        },
        "stages": [_sum(stage, own) for stage in stage_names(run.steps)
                   if (own := [step for step in steps if step["stage"] == stage])],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimated.disk,
        "before": calls_before_plan(folder, _done(prepared)) if steps else {},
        "assumptions": assumptions(prepared, estimated, like, phases) if steps else [],
    }  # fmt: skip


def _done(prepared: Prepared) -> list[Unit]:
    """The committed units of the steps that ask a model."""
    asking = {step.id for step in prepared.run.steps if step.prompts}
    documents = prepared.plan.documents(asking)
    return [unit for document in documents for unit in document.units if unit.is_done]


def _step(step: Step, costs: Numbers, price: Price) -> Json:
    about = {"step_id": step.id, "stage": step.name, "method": step.method, "repeat": step.repeat}
    expected: Json = dict(zip(MEASURES, map(int, costs.round()), strict=True))
    budgets: Json = {"reply_tokens": expected.pop("budget_tokens")}
    prompt = expected["prompt_tokens"]
    cached = prompt - expected["uncached_tokens"]
    for own in (expected, budgets):
        own["money"] = price.of(prompt, cached, own["reply_tokens"])
    return {**about, "expected": expected, "budgets": budgets}


def _sum(stage: str, steps: Sequence[Json]) -> Json:
    """The sums over all steps of a stage; of money, those whose engine has a price."""
    totals: Json = {"stage": stage}
    for kind in ("expected", "budgets") if steps else ():
        columns = {name: [step[kind][name] for step in steps] for name in steps[0][kind]}
        known = {name: [one for one in own if one is not None] for name, own in columns.items()}
        totals[kind] = {name: sum(own) if own else None for name, own in known.items()}
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
        "gpus": engines * engine.gpus_elsewhere,
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
        prefill = own["uncached_tokens"] / rates.prefill
        seconds = {name: prefill + reply / rates.decode for name, reply in replies.items()}
        found["hours"] = {name: s / engines / 3600 for name, s in seconds.items()}
        found["gpu_hours"] = {name: s * engine.gpus_elsewhere / 3600 for name, s in seconds.items()}
    return found


def _parts(plan: Mapping[str, Any]) -> list[Part]:
    """The printed parts of the plan."""
    head, corpus = Heading(f"plan of {plan['run']}"), plan["corpus"]
    if not plan["stages"]:
        return [head, "nothing is left to do; a run makes no model call"]
    has_price = plan["all"]["expected"]["money"] is not None
    facts = (
        f"{counted(corpus['documents'], 'document')}, {corpus['documents_to_do']:,} of them with "
        f"something to ask, {counted(corpus['questions'], 'question')}, "
        f"{short(corpus['words'])} words; "
        f"{short(sum(plan['disk'].values()))}B of disk"
    )
    return [
        head,
        facts,
        Table([_stage_row(stage, has_price) for stage in [*plan["stages"], plan["all"]]]),
        Table([_phase_row(phase) for phase in plan["phases"]], left=("engine",)),
        "\n".join(f"- {line}" for line in plan["assumptions"]),
    ]


def _stage_row(stage: Mapping[str, Any], has_price: bool) -> dict[str, object]:
    expected, budgets = stage["expected"], stage["budgets"]
    cells: dict[str, object] = {"stage": stage["stage"], "calls": short(expected["calls"])}
    cells["prompt tokens"] = short(expected["prompt_tokens"])
    share = expected["uncached_tokens"] / max(1, expected["prompt_tokens"])
    cells["cached %"] = 100 * (1 - share) if expected["prompt_tokens"] else None
    cells["reply tokens"] = short(expected["reply_tokens"])
    cells["reply budgets"] = short(budgets["reply_tokens"])
    if has_price:
        for heading, own in (("money", expected), ("with budgets", budgets)):
            cells[heading] = None if own["money"] is None else f"{own['money']:.2f}"
    return cells


def _phase_row(phase: Mapping[str, Any]) -> dict[str, object]:
    cells: dict[str, object] = {"phase": phase["phase"], "engine": phase["engine"]}
    cells["engines"] = phase["engines"]
    for name in ("prefill", "decode"):
        rate = phase[f"{name}_tokens_per_second"]
        cells[f"{name}/s"] = None if rate is None else short(rate)
    gpu_hours = phase["gpus"] and phase["gpu_hours"]
    for heading, own in (("hours", phase["hours"]), ("GPU-hours", gpu_hours)):
        cells[heading] = f"{own['expected']:.3g}" if own else None
        cells[f"{heading} with budgets"] = f"{own['budgets']:.3g}" if own else None
    return cells


def short(number: float) -> str:
    """Three digits: 940, 1.25k, 12.5M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            scaled = number / size
            return f"{scaled:.{max(0, 3 - len(str(int(scaled + 1e-9))))}f}{sign}"
    return f"{number:.0f}"
