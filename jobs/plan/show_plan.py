"""`gistmill plan`: make the plan, store it with the run, print it on one screen."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.config.run_config import RunConfig
from jobs.graph.loading import chosen_documents
from jobs.graph.read_run import read_config
from jobs.graph.resolved_run import resolve
from jobs.output.cells import Heading, Part, Table
from jobs.output.print_tables import print_found
from jobs.plan.cost_rates import Options
from jobs.plan.count_calls import NoEmbedder
from jobs.plan.plan import make_plan
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, refuse_unreachable_path, unwritable
from pipeline.store.runs.run_folder import RunFolder

_PILOT = "pilot="
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
    from jobs.run.launch import INCOMPLETE, run  # here: ray takes a second to import

    if not number.isdecimal() or int(number) < 1:
        raise UsageError(f"pilot={number}: name how many documents to run, 1 or more")
    there = sum(not one.document.skipped for one in chosen_documents(config))
    if int(number) > there:
        raise UsageError(f"pilot={number}: there are {there} documents; name fewer")
    first = {"sample" if config.sample else "limit": int(number)}
    name = f"{resolve(config).name}-pilot{number}"
    outcome = run(resolve(config.model_copy(update={**first, "run": name})), warn)
    for complaint in outcome.complaints:
        warn(complaint)
    if outcome.exit_code == INCOMPLETE:
        raise UsageError(f"pilot={number}: not complete; the same command goes on from here")
    return name


def _parts(plan: Mapping[str, Any]) -> list[Part]:
    """The printed parts of the plan."""
    head, corpus = Heading(f"plan of {plan['run']}"), plan["corpus"]
    if not plan["stages"]:
        return [head, "nothing is left to do; a run makes no model call"]
    facts = (
        f"{corpus['documents']:,} documents, {corpus['documents_to_do']:,} of them with something "
        f"to ask, {corpus['questions']:,} questions, {short(corpus['words'])} words; "
        f"{short(sum(plan['disk'].values()))}B of disk"
    )
    return [
        head,
        facts,
        Table([_row(stage) for stage in [*plan["stages"], plan["all"]]]),
        Table([_phase(phase) for phase in plan["phases"]], left=("engine",)),
        "\n".join(f"- {line}" for line in plan["assumptions"]),
    ]


def _row(stage: Mapping[str, Any]) -> dict[str, object]:
    expected, budgets = stage["expected"], stage["budgets"]
    cells: dict[str, object] = {"stage": stage["stage"], "calls": short(expected["calls"])}
    cells["prompt tokens"] = short(expected["prompt_tokens"])
    share = expected["uncached_tokens"] / max(1, expected["prompt_tokens"])
    cells["cached %"] = 100 * (1 - share) if expected["prompt_tokens"] else None
    cells["reply tokens"] = short(expected["reply_tokens"])
    cells["reply budgets"] = short(budgets["reply_tokens"])
    if expected["money"] is not None:
        cells["money"] = f"{expected['money']:.2f}"
        cells["with budgets"] = f"{budgets['money']:.2f}"
    return cells


def _phase(phase: Mapping[str, Any]) -> dict[str, object]:
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
