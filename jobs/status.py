"""`gistmill status`: what of a run is done, running and failed, from the files alone."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from jobs.options import ReadOptions
from jobs.status_lines import not_done, status_lines
from jobs.tables import print_json, print_line
from jobs.turns import LEASE
from pipeline.errors import UsageError
from pipeline.store import connect
from pipeline.store.lease import holder
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name

_ACTIVE = ("PENDING", "RUNNING")  # of jobs
_STEPS = """
select r.stage, r.method, r.repeat, r.step_id, r.inputs, r.ok, r.problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds, r.problems
from runs r left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat"""


def show_status(options: ReadOptions, as_json: bool, steps: bool = False) -> None:
    """Print a row per stage, or with `steps` per step, one per kind of problem, and the workers; in
    a terminal no more than a screen of it."""
    _print(_found(options), as_json, steps)


def watch_status(options: ReadOptions, as_json: bool, steps: bool, seconds: float) -> None:
    """The same every `seconds`, in place in a terminal, until the run is no longer at work."""
    console = Console(file=sys.stdout, markup=False, highlight=False)
    looks = _while_at_work(options, seconds)
    if as_json or not console.is_terminal:
        for number, found in enumerate(looks):
            if number:
                print_line()
            _print(found, as_json, steps)
        return
    with Live(console=console, auto_refresh=False) as live:
        for found in looks:
            lines = status_lines(found, console.width, console.height - 1, steps)
            live.update(Text("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)


def _while_at_work(options: ReadOptions, seconds: float) -> Iterator[dict[str, Any]]:
    """What there is to see every `seconds`, up to the first time that the run is not at work."""
    yield (found := _found(options))
    while _is_at_work(found):
        time.sleep(seconds)
        yield (found := _found(options))


def _print(found: Mapping[str, Any], as_json: bool, steps: bool) -> None:
    if as_json:
        print_json(found)
        return
    room = {}
    if sys.stdout.isatty():
        size = shutil.get_terminal_size()
        room = {"width": size.columns, "height": size.lines - 1}
    print_line("\n".join(status_lines(found, **room, steps=steps)))


def _is_at_work(found: Mapping[str, Any]) -> bool:
    """Whether a command executes the run, a worker is alive, or a job of it is not over."""
    job = found["job"]
    return bool(found["driver"] or found["alive"] or (job and job["status"] in _ACTIVE))


def _found(options: ReadOptions) -> dict[str, Any]:
    """All that `--json` prints."""
    name = run_name(options.warehouse, options.run)
    folder = RunFolder(options.warehouse, name)
    stages = folder.report_facts()["stages"]
    with connect(options.warehouse, name) as connection:
        connection.execute("set variable stages = ?", [stages])
        steps = query(connection, _STEPS)
        left_out = query(connection, "from left_out")
    problems = _problems(steps)
    progress, alive = folder.at_work()
    return {
        "run": name,
        "complete": not not_done(steps),
        "steps": steps,
        "problems": problems,
        "driver": holder(folder.path, LEASE),
        "alive": alive,
        "silent": folder.silent(progress["launch"]) if progress else {},
        "progress": progress,
        "job": _job(options, name),
        "left_out": [*left_out, *folder.left_out.rows],
    }


def _problems(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per stage and problem, from the column `problems` of the steps, which loses it."""
    counts: Counter[tuple[str, str]] = Counter()
    for step in steps:
        for one in step.pop("problems") or ():
            counts[step["stage"], one["problem"]] += one["inputs"]
    return [
        {"stage": stage, "problem": problem, "inputs": number}
        for (stage, problem), number in sorted(counts.items())
    ]


def _job(options: ReadOptions, run: str) -> dict[str, Any] | None:
    """The last job of the run at `cluster.address`. Raises UsageError where there is none."""
    if options.address is None:
        return None
    from jobs.submit.ray_job import job_state  # imported here, as ray takes a second

    job = job_state(options.address, run, str(options.warehouse))
    if job is None:
        raise UsageError(f"cluster.address={options.address}: no job of run {run} was sent there")
    return {"id": job.id, "status": job.status, "exit_code": job.exit_code}
