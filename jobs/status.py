"""`gistmill status`: what of a run is done, running and failed, from the files alone."""

from typing import Any

from jobs.options import ReadOptions
from jobs.progress import progress_line
from jobs.tables import print_json, print_line, print_table
from pipeline.errors import UsageError
from pipeline.store import connect
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name

_STEPS = """
select r.stage, r.method, r.repeat, r.step_id, r.inputs, r.ok, r.problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds
from runs r left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat"""
_PROBLEMS = """
select s.stage, i.problem, count(*) as inputs from inputs i join steps s using (step_id)
where i.problem is not null group by all order by all"""


def show_status(options: ReadOptions, as_json: bool) -> None:
    """Print a row per step and per kind of problem, and the workers with a fresh heartbeat."""
    name = run_name(options.warehouse, options.run)
    folder = RunFolder(options.warehouse, name)
    stages = folder.report_facts()["stages"]
    with connect(options.warehouse, name) as connection:
        connection.execute("set variable stages = ?", [stages])
        steps, problems = query(connection, _STEPS), query(connection, _PROBLEMS)
    progress, alive = folder.at_work()
    job = _job(options, name)
    not_done = sum(step["not_done"] for step in steps)
    if as_json:
        print_json(
            {
                "run": name,
                "complete": not not_done,
                "steps": steps,
                "problems": problems,
                "alive": alive,
                "progress": progress,
                "job": job,
            }
        )
        return
    state = f"{not_done} inputs not done" if not_done else "complete"
    print_line(f"run {name}: {state}, {len(alive)} workers at work\n")
    if job:
        print_line(f"job {job['id']}: {job['status'].lower()}\n")
    if progress:
        print_line(f"{progress_line(progress)}\n")
    print_table(steps, left=("method", "step_id"))
    if problems:
        print_line()
        print_table(problems, left=("problem",))
    for worker in alive:
        print_line(_at_work(worker))


def _job(options: ReadOptions, run: str) -> dict[str, Any] | None:
    """The last job of the run at `cluster.address`. Raises UsageError where there is none."""
    if options.address is None:
        return None
    from jobs.submit.ray_job import job_state  # imported here, as ray takes a second

    job = job_state(options.address, run, str(options.warehouse))
    if job is None:
        raise UsageError(f"cluster.address={options.address}: no job of run {run} was sent there")
    return {"id": job.id, "status": job.status, "exit_code": job.exit_code}


def _at_work(worker: dict[str, Any]) -> str:
    documents = ", ".join(f"{d} for {s:.0f} s" for d, s in worker["documents"].items())
    away = worker.get("waiting_for")
    return f"worker {worker['worker']}: {documents or 'waiting'}" + (
        f"; waiting for {away}" if away else ""
    )
