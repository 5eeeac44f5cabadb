"""`gistmill plan`: the remaining work of a run, its cost in tokens, hours and money."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.config.options import price_of
from jobs.config.run_config import read_config
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.resolved_run import resolve, stage_names
from jobs.output.print_tables import Heading, Part, Table, counted
from jobs.plan.estimate import (
    MEASURES,
    NO_COST,
    DryRunShards,
    Estimate,
    NoEmbedder,
    Numbers,
    estimate,
)
from jobs.run.stored_run import merge_with_stored_run
from pipeline.core.engine import EngineSettings, Price
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import check_layout
from pipeline.work.units import Step

REPLY_COSTS = 10.0  # the cost of a reply token, in prompt tokens
_UNKNOWN = "not known; add --rates PREFILL,DECODE, or run some documents first under the same name"
Json = dict[str, Any]
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """`rates`: prompt and reply tokens a second of one engine."""

    rates: tuple[float, float] | None
    gpus: int
    price: Price | None

    @classmethod
    def of(cls, rates: str | None, gpus: int, price: str | None) -> "Options":
        speeds = None
        if rates is not None:
            try:
                prefill, decode = map(float, rates.split(","))
            except ValueError:
                form = "PREFILL,DECODE in tokens a second"
                raise UsageError(f"--rates {rates}: write {form}") from None
            if min(prefill, decode) <= 0:
                raise UsageError(f"--rates {rates}: both must be above 0")
            speeds = (prefill, decode)
        return cls(speeds, gpus, None if price is None else price_of(price))

    def num_engines(self, settings: EngineSettings) -> int:
        """How many engines run at once, one at least."""
        if not settings.gpus_elsewhere:
            return settings.max_workers or settings.min_workers
        num = max(1, int(self.gpus / settings.gpus_elsewhere))
        return min(num, settings.max_workers or num)


def make_plan(words: Sequence[str], options: Options, warn: Warn) -> Json:
    """The plan of the run that the words make; writes nothing. Raises UsageError if words, corpus
    or options cannot be used."""
    config = read_config(words)
    without_model = NoEmbedder(**config.embedder.model_dump())
    run = resolve(config.model_copy(update={"embedder": without_model}))
    folder = RunFolder(as_path(run.config.warehouse), run.name)
    check_layout(folder.warehouse)
    run = merge_with_stored_run(run, folder)
    prepared = prepare(run, folder.warehouse, warn, DryRunShards(folder.warehouse))
    estimated = estimate(prepared)
    steps = [_step(step, estimated.costs[step.id], options.price or engine.price)
             for step, engine in run.steps_with_engines
             if engine and step.id in estimated.costs]  # fmt: skip
    speeds = _speeds_so_far(folder)
    phases = [_phase(p, p.engine, estimated, options, speeds.get(p.name))
              for p in run.phases if p.engine and steps]  # fmt: skip
    sizes = [(d.num_questions, d.num_words) for d in prepared.plan.documents() if not d.is_bad]
    of_stage = ((name, [s for s in steps if s["stage"] == name]) for name in stage_names(run.steps))
    return {
        "run": folder.path.name,
        "warehouse": str(folder.warehouse),
        "corpus": {
            "documents": len(sizes),
            "questions": sum(num_questions for num_questions, _ in sizes),
            "words": sum(num_words for _, num_words in sizes),
            "documents_to_do": estimated.sample.num_documents,
        },
        "stages": [_sum(name, of_name) for name, of_name in of_stage if of_name],
        "all": _sum("all", steps),
        "steps": steps,
        "phases": phases,
        "disk": estimated.disk,
        "assumptions": [*_assumptions(prepared, estimated, phases)] if steps else [],
    }


def _step(step: Step, costs: Numbers, price: Price) -> Json:
    expected: Json = dict(zip(MEASURES, map(int, costs.round()), strict=True))
    budgets: Json = {"reply_tokens": expected.pop("budget_tokens")}
    prompt = expected["prompt_tokens"]
    for kind in (expected, budgets):
        kind["money"] = price.of(prompt, prompt - expected["uncached_tokens"], kind["reply_tokens"])
    about = {"step_id": step.id, "stage": step.name, "method": step.method, "repeat": step.repeat}
    return {**about, "expected": expected, "budgets": budgets}


def _sum(stage: str, steps: Sequence[Json]) -> Json:
    totals: Json = {"stage": stage, **({"expected": {}, "budgets": {}} if steps else {})}
    for step in steps:
        for kind in ("expected", "budgets"):
            for name, value in step[kind].items():
                before = totals[kind].setdefault(name, None)
                totals[kind][name] = before if value is None else value + (before or 0)
    return totals


def _speeds_so_far(folder: RunFolder) -> dict[str, float]:
    """Prompt tokens a second and engine, by phase; a reply token counts as REPLY_COSTS."""
    costs, seconds = defaultdict[str, float](float), defaultdict[str, float](float)
    for launch in folder.readable_launches():
        for took in launch.get("phases", ()):
            name = took["phase"].split(":")[0]
            uncached = took["prompt_tokens"] - took["cached_tokens"]
            costs[name] += uncached + REPLY_COSTS * took["reply_tokens"]
            seconds[name] += took["seconds"] * took["workers"]
    return {name: costs[name] / seconds[name] for name in costs if costs[name] and seconds[name]}


def _phase(
    phase: Phase, engine: EngineSettings, estimated: Estimate, options: Options, speed: float | None
) -> Json:
    """The hours of a phase, by the rates of the options, else the `speed` that the run had so far,
    else the engine's settings."""
    rates, how = engine.token_rates(), "the engine's settings"
    if options.rates is not None:
        rates, how = options.rates, "--rates {:.15g},{:.15g}".format(*options.rates)
    elif speed is not None:
        rates = (speed, speed / REPLY_COSTS)
        how = f"by the run's own clock, a reply's token as {REPLY_COSTS:.0f} of a prompt's"
    num, gpus = options.num_engines(engine), engine.gpus_elsewhere
    hours = None
    if rates:
        costs = sum((estimated.costs.get(step.id, NO_COST) for step in phase.steps), NO_COST)
        _, _, uncached, expected, budgets = costs.tolist()  # in the order of MEASURES
        hours = {name: (uncached / rates[0] + reply / rates[1]) / 3600
                 for name, reply in (("expected", expected), ("budgets", budgets))}  # fmt: skip
    return {
        "phase": phase.name,
        "engine": engine.title,
        "engines": num,
        "gpus": num * gpus,
        "prefill_tokens_per_second": rates and rates[0],
        "decode_tokens_per_second": rates and rates[1],
        "rates": rates and how,
        "hours": hours and {name: value / num for name, value in hours.items()},
        "gpu_hours": hours and {name: value * gpus for name, value in hours.items()},
    }


def _assumptions(
    prepared: Prepared, estimated: Estimate, phases: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    stages = [step.stage for step in prepared.run.steps if step.id in estimated.costs]
    prompts = dict.fromkeys(p for s in stages if s for p in s.prompts_used() if p.assumed)
    sample, left = estimated.sample, counted(estimated.sample.num_documents, "document")
    if all(scale == 1 for scale in sample.scale.values()):
        yield f"counted: {left}, all that is left; nothing is scaled"
    else:
        questions = {(u.document_id, q) for u in sample.units if not u.is_done for q in u.inputs}
        some = f"{len(sample.documents)} of {left}, with {len(questions):,} questions"
        yield f"counted: {some}; scaled to the words and questions of all"
    for name, counts in estimated.counts.items():
        yield f"tokens of {name}: {counts.how}"
    yield f"expected: {'; '.join(f'{p.name} {p.assumed}' for p in prompts)}"
    for phase in phases:
        yield f"rates of {phase['phase']}: {phase['rates'] or _UNKNOWN}"
    if any(p.engine and p.engine.context_tokens is None for p in prepared.run.phases):
        yield "engine.context_tokens is not set: no prompt is taken to be too long"


def plan_parts(plan: Mapping[str, Any]) -> list[Part]:
    head, corpus = Heading(f"plan of {plan['run']}"), plan["corpus"]
    if not plan["stages"]:
        return [head, "nothing is left to do; a run makes no model call"]
    has_price = plan["all"]["expected"]["money"] is not None
    stages, phases = [], []
    for stage in [*plan["stages"], plan["all"]]:
        expected, budgets = stage["expected"], stage["budgets"]
        prompt, uncached = expected["prompt_tokens"], expected["uncached_tokens"]
        money = {"money": expected["money"], "with budgets": budgets["money"]} if has_price else {}
        stages.append({
            "stage": stage["stage"],
            "calls": short(expected["calls"]),
            "prompt tokens": short(prompt),
            "cached %": 100 * (1 - uncached / prompt) if prompt else None,
            "reply tokens": short(expected["reply_tokens"]),
            "reply budgets": short(budgets["reply_tokens"]),
            **{name: None if value is None else f"{value:.2f}" for name, value in money.items()},
        })  # fmt: skip
    for phase in plan["phases"]:
        row: dict[str, object] = {name: phase[name] for name in ("phase", "engine", "engines")}
        for name in ("prefill", "decode"):
            rate = phase[f"{name}_tokens_per_second"]
            row[f"{name}/s"] = rate and short(rate)
        gpu_hours = phase["gpus"] and phase["gpu_hours"]
        for heading, hours in (("hours", phase["hours"]), ("GPU-hours", gpu_hours)):
            row[heading] = f"{hours['expected']:.3g}" if hours else None
            row[f"{heading} with budgets"] = f"{hours['budgets']:.3g}" if hours else None
        phases.append(row)
    return [
        head,
        f"{counted(corpus['documents'], 'document')}, {corpus['documents_to_do']:,} of them with "
        f"something to ask, {counted(corpus['questions'], 'question')}, "
        f"{short(corpus['words'])} words; {short(sum(plan['disk'].values()))}B of disk",
        Table(stages),
        Table(phases, left=("engine",)),
        "\n".join(f"- {line}" for line in plan["assumptions"]),
    ]


def short(number: float) -> str:
    """Three digits: 940, 1.25k, 12.5M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            scaled = number / size
            return f"{scaled:.{max(0, 3 - len(str(int(scaled + 1e-9))))}f}{sign}"
    return f"{number:.0f}"
