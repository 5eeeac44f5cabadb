"""`gistmill plan`: make the plan, keep it with the run, print it on one screen."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.config import RunConfig
from jobs.plan.numbers import short, span
from jobs.plan.plan import Plan, document, make_plan, stages_of
from jobs.plan.rates import RateOptions
from jobs.tables import markdown, print_json, print_line
from pipeline.place import place, reaching, unwritable
from pipeline.store.runs import RunFolder

_HEADINGS = {
    "calls": "calls",
    "prompt_tokens": "prompt tokens",
    "uncached_tokens": "not cached",
    "reply_tokens": "reply tokens",
}


def show_plan(config: RunConfig, options: RateOptions, as_json: bool) -> None:
    """Print the plan; keep it as runs/<name>/plan.json where there is something to do."""
    plan = make_plan(config, options)
    kept = plan.has_work and keep(plan)
    if as_json:
        print_json(document(plan))
        return
    print_line(render_plan(plan))
    where = f"kept in {plan.warehouse}/runs/{plan.run}/plan.json" if kept else "not kept"
    print_line(f"\nrun {plan.run}: {where}")


def keep(plan: Plan) -> bool:
    """Whether the plan could be written beside the run."""
    warehouse = place(plan.warehouse)
    if unwritable(warehouse):
        return False
    with reaching(warehouse, "warehouse"):
        RunFolder(warehouse, plan.run).write_plan(document(plan))
    return True


def render_plan(plan: Plan) -> str:
    """As it is printed."""
    if not plan.has_work:
        return f"# plan of {plan.run}\n\nnothing is left to do; a run makes no model call"
    parts = [
        f"# plan of {plan.run}",
        _corpus(plan),
        markdown(_rows(plan)),
        markdown([_phase(phase) for phase in plan.phases], left=("engine",)),
        _foot(plan),
    ]
    return "\n\n".join(parts)


def _corpus(plan: Plan) -> str:
    corpus, disk = plan.corpus, sum(plan.disk.values())
    left = corpus["documents"] - corpus["documents_to_do"]
    done = f", {left:,} of them done" if left else ""
    return (
        f"{corpus['documents']:,} documents{done}, {corpus['questions']:,} questions, "
        f"{short(corpus['words'])} words; {short(disk)}B of disk"
    )


def _rows(plan: Plan) -> list[dict[str, object]]:
    """A row per stage, or where methods differ per method, and one of all."""
    stages = stages_of(plan.steps)
    total = {"stage": "all"} | {
        measure: [sum(row[measure][i] for row in stages) for i in range(3)] for measure in _HEADINGS
    }
    return [
        {
            "stage": row["stage"],
            **{
                cell: value
                for measure, heading in _HEADINGS.items()
                for cell, value in _cells(heading, row[measure])
            },
        }
        for row in [*stages, total]
    ]


def _cells(heading: str, numbers: Sequence[float]) -> list[tuple[str, str]]:
    low, likely, high = numbers
    return [(heading, short(likely)), (f"low-high {heading.split()[0]}", span(low, high))]


def _phase(phase: Mapping[str, Any]) -> dict[str, object]:
    hours, gpu_hours = phase["hours"], phase["gpu_hours"]
    prefill, decode = phase["prefill_tokens_per_second"], phase["decode_tokens_per_second"]
    return {
        "phase": phase["phase"],
        "engine": phase["engine"],
        "engines": phase["engines"],
        "prefill/s": None if prefill is None else short(prefill),
        "decode/s": None if decode is None else short(decode),
        "hours": _hours(hours, 1),
        "low-high": _hours(hours, 0, 2),
        "GPU-hours": _hours(gpu_hours, 1) if phase["gpus"] else None,
        "low-high ": _hours(gpu_hours, 0, 2) if phase["gpus"] else None,
    }


def _hours(hours: object, *places: int) -> str | None:
    if not isinstance(hours, Sequence):
        return None
    return "-".join(f"{hours[place]:.3g}" for place in places)


def _foot(plan: Plan) -> str:
    sample, corpus = plan.sample, plan.corpus
    percent = f"; low and high leave {100 * sample['margin']:.0f}% for that"
    lines = [
        f"sampled: {sample['documents']} of {corpus['documents_to_do']:,} documents, "
        f"{sample['questions']} questions{percent if sample['margin'] else ''}",
        f"tokens: {plan.tokens}; not cached: what a prefix cache with room for all does not hold",
        *(f"rates of {phase['phase']}: {phase['rates']}" for phase in plan.phases),
        *plan.notes,
    ]
    return "\n".join(f"- {line}" for line in lines)
