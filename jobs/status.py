"""`gistmill status`: what of a run is done, running and failed, from the files alone."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from jobs.cells import Table
from jobs.options import ReadOptions
from jobs.progress import not_written, progress_line
from jobs.tables import print_json, print_line, print_parts, print_table
from jobs.turns import LEASE
from pipeline.errors import UsageError
from pipeline.store import connect
from pipeline.store.lease import holder
from pipeline.store.runs import RunFolder
from pipeline.store.views import query, run_name

_STEPS = """
select r.stage, r.method, r.repeat, r.step_id, r.inputs, r.ok, r.problem, r.skipped, r.not_done,
  r.calls, r.prompt_tokens, r.cached_tokens, r.reply_tokens, r.seconds, r.problems
from runs r left join steps s using (step_id)
order by list_position(getvariable('stages'), r.stage), r.method nulls first, r.repeat"""


def show_status(options: ReadOptions, as_json: bool, whole: bool = False) -> None:
    """Print a row per step and per kind of problem, and the workers with a fresh heartbeat."""
    found = _found(options)
    if as_json:
        print_json(found)
    else:
        _print(found, whole)


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
        "complete": not _not_done(steps),
        "steps": steps,
        "problems": problems,
        "driver": holder(folder.path, LEASE),
        "alive": alive,
        "silent": folder.silent(progress["launch"]) if progress else {},
        "progress": progress,
        "job": _job(options, name),
        "left_out": [*left_out, *folder.left_out.rows],
    }


def _print(found: dict[str, Any], whole: bool) -> None:
    steps, alive = found["steps"], found["alive"]
    state = "complete" if found["complete"] else f"{_not_done(steps)} inputs not done"
    print_line(f"run {found['run']}: {state}, {_who(found['driver'], alive)}\n")
    if job := found["job"]:
        print_line(f"job {job['id']}: {job['status'].lower()}\n")
    if found["progress"]:
        print_line(f"{progress_line(found['progress'])}\n")
    table = Table(steps, ("method", "step_id"), num_keys=2, unless_zero=("repeat",))
    print_parts([table], whole)
    if found["problems"]:
        print_line()
        print_table(found["problems"], ("problem",), whole=whole)
    for line in (*map(_at_work, alive), *_refused(alive, found["silent"])):
        print_line(line)


def _not_done(steps: list[dict[str, Any]]) -> int:
    return sum(step["not_done"] for step in steps)


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


def _who(driver: str | None, alive: list[dict[str, Any]]) -> str:
    """Who is at work: the command that executes the run, and its workers by machine."""
    hosts = Counter(str(worker["worker"]).rpartition("-")[0] for worker in alive)
    workers = f"{len(alive)} workers at work"
    if hosts:
        workers += f" ({', '.join(f'{number} on {host}' for host, number in hosts.items())})"
    if driver is None:
        return workers
    host, _, pid = driver.rpartition("-")
    return f"executed on {host} (process {pid}), {workers}"


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


def _refused(alive: list[dict[str, Any]], silent: dict[str, float]) -> Iterator[str]:
    """What workers could not say of themselves."""
    for worker in alive:
        if worker.get("refused"):
            yield f"worker {worker['worker']}: its heartbeat {not_written(worker['refused'])}"
    for name, seconds in silent.items():
        yield f"worker {name}: no heartbeat for {seconds:.0f} s; it died, hangs or cannot write"
