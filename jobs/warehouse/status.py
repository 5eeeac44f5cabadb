"""`gistmill status`: the done, running and failed parts of a run, from the files alone."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_json, print_line
from jobs.warehouse.status_lines import not_done, status_lines
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query
from pipeline.store.upkeep.lease import RUN, holder

_SQL = sql_beside(__file__)

_ACTIVE = ("PENDING", "RUNNING")  # of jobs


def show_status(
    options: ReadOptions, as_json: bool, steps: bool, seconds: float | None = None
) -> None:
    """Print a row per stage, or with `steps` per step, one per kind of problem, and the workers; in
    a terminal at most a screen of it. With `seconds` again after so many, in a terminal in place,
    until the run is no longer at work."""
    console = Console(file=sys.stdout, markup=False, highlight=False)
    looks = _looks(options, seconds)
    if as_json or seconds is None or not console.is_terminal:
        for number, found in enumerate(looks):
            if number:
                print_line()
            _print(found, as_json, steps)
        return
    with Live(console=console, auto_refresh=False) as live:
        for found in looks:
            lines = status_lines(found, (console.width, console.height - 1), steps)
            live.update(Text("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)


def _looks(options: ReadOptions, seconds: float | None) -> Iterator[dict[str, Any]]:
    """The status, and with `seconds` again, up to the first time that the run is not at work."""
    yield (found := _found(options))
    while seconds is not None and _is_at_work(found):
        time.sleep(seconds)
        yield (found := _found(options))


def _print(found: Mapping[str, Any], as_json: bool, steps: bool) -> None:
    if as_json:
        print_json(found)
        return
    columns, lines = shutil.get_terminal_size()
    size = (columns, lines - 1) if sys.stdout.isatty() else None
    print_line("\n".join(status_lines(found, size, steps)))


def _is_at_work(found: Mapping[str, Any]) -> bool:
    """True if a command executes the run, a worker is alive, or a job of it is not over."""
    job = found["job"]
    return bool(found["driver"] or found["alive"] or (job and job["status"] in _ACTIVE))


def _found(options: ReadOptions) -> dict[str, Any]:
    """The content of `--json`."""
    with options.opened() as (folder, connection):
        connection.execute("set variable stages = ?", [folder.report_facts()["stages"]])
        steps = query(connection, _SQL["steps"])
        (sizes,) = query(connection, "from call_bytes")
        left_out = query(connection, "from left_out")
    problems = _problems(steps)
    progress, alive = folder.at_work()
    return {
        "run": folder.path.name,
        "complete": not not_done(steps),
        "steps": steps,
        "problems": problems,
        "calls": sizes,
        "driver": holder(folder.path, RUN),
        "alive": alive,
        "silent": folder.silent(progress["launch"]) if progress else {},
        "progress": progress,
        "job": _job(options, folder.path.name),
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
    """The last job of the run at `cluster.address`. Raises UsageError if there is none."""
    if options.address is None:
        return None
    from jobs.submit.submit_ray_job import job_state  # imported here, as ray takes a second

    job = job_state(options.address, run, str(options.warehouse))
    if job is None:
        raise UsageError(f"cluster.address={options.address}: no job of run {run} was sent there")
    return {"id": job.id, "status": job.status, "exit_code": job.exit_code}
