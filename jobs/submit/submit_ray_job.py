"""Submits a run as a job of a running Ray cluster, follows it to its end, or stops it.

Exit codes are those of `gistmill run`: 0 only if the run is complete, and 4 if the job was stopped
or is no longer followed.
"""

import shlex
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from jobs.config.clusters import RayCluster
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.provenance import commit_variable
from jobs.submit.package import command, pack, refuse_unshared, words_on_cluster
from jobs.submit.submission import (
    INCOMPLETE,
    Submission,
    delete_marker,
    print_to_stderr,
    run_of,
    write_marker,
)
from pipeline.cluster.ray_jobs import Job, RayJobs
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path

_SECONDS_TO_STOP = 30  # in addition to the run's grace period
_DRIVERS_OWN = (1, 2, 3, 4)  # exit codes of `gistmill run`


def send(resolved: ResolvedRun, words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit the run, unless it is already running there, and follow it into `log` unless that is
    None.

    Raises UsageError if it was not submitted, EngineError if the head is lost or has lost the job.
    """
    config = resolved.config
    assert isinstance(config.cluster, RayCluster)
    refuse_unshared(config)
    jobs = RayJobs(config.cluster.address)
    run, warehouse = resolved.name, as_path(config.warehouse)
    if active := [job for job in jobs_of(jobs, run, config.warehouse) if not job.is_over]:
        job_id, is_new = active[-1].id, False
    else:
        job_id, is_new = _send(jobs, resolved, words)
    told = f"sent run {run} as" if is_new else f"run {run} is running there already, as"
    print_to_stderr(f"{told} job {job_id}")
    left = Submission(run, job_id, "SENT", INCOMPLETE)
    run_there = shlex.join([f"run={run}", f"cluster.address={jobs.address}"])
    how = f"The same command follows it again; gistmill submit --stop {run_there} stops it"
    if log is None:
        print_to_stderr(how)
        return left
    try:
        ended = jobs.follow(job_id, lambda text: print(text, end="", file=log, flush=True))
    except KeyboardInterrupt:
        print_to_stderr(f"job {job_id} keeps running. {how}")
        return left
    delete_marker(warehouse, run)
    return Submission(run, job_id, ended.status, _exit_code(ended))


def _send(jobs: RayJobs, resolved: ResolvedRun, words: Sequence[str]) -> tuple[str, bool]:
    """Submit the run as a new job; returns its id and True, or False if another submit sent the run
    first: then job and marker are the other's."""
    config, cluster = resolved.config, resolved.config.cluster
    assert isinstance(cluster, RayCluster)
    run, warehouse = resolved.name, as_path(config.warehouse)
    numbers = [int(job.id.rpartition("-")[2]) for job in jobs_of(jobs, run, None)]
    job_id = f"gistmill-{run}-{max(numbers, default=0) + 1}"
    seconds = round(_SECONDS_TO_STOP + 60 * cluster.grace_minutes)  # until Ray kills a stopped job
    own = {"RAY_JOB_STOP_WAIT_TIME_S": str(seconds), **commit_variable()}
    env_vars = {**own, **cluster.runtime_env.get("env_vars", {})}
    runtime_env = {**cluster.runtime_env, "env_vars": env_vars}
    facts = {"run": run, "warehouse": _named(config.warehouse)}
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        there = words_on_cluster(resolved, words, pack(Path(folder)))
        begin = command(["-m", "jobs.cli.job_entry", job_id, config.warehouse, *there])
        write_marker(warehouse, run, job_id)
        try:
            jobs.send(job_id, begin, Path(folder), runtime_env, facts)
        except UsageError:
            with suppress(UsageError):  # the head may have ended by now
                if job_id in [job.id for job in jobs_of(jobs, run, config.warehouse)]:
                    return job_id, False
            delete_marker(warehouse, run)
            raise
    return job_id, True


def jobs_of(jobs: RayJobs, run: str, warehouse: str | None) -> list[Job]:
    """The jobs submitted for the run, oldest first; `warehouse` None: for any warehouse."""
    ours = [job for job in jobs.all() if job.id.startswith("gistmill-") and run_of(job.id) == run]
    if warehouse is None:
        return ours
    names = (warehouse, _named(warehouse))  # as earlier versions wrote it, and as this one
    return [job for job in ours if job.metadata.get("warehouse") in names]


def _named(warehouse: str) -> str:
    """Equal for all spellings of an address, such as with a trailing slash."""
    return str(as_path(warehouse)).rstrip("/")


def job_state(address: str, run: str, warehouse: str | None = None) -> Job | None:
    """The last job submitted for a run, or None. Raises UsageError if the head cannot be
    reached."""
    return next(reversed(jobs_of(RayJobs(address), run, warehouse)), None)


def stop(cluster: RayCluster, run: str, warehouse: str | None) -> Submission:
    """Stop the run's active job and wait for its end. Raises UsageError if there is none, or it
    does not end in time."""
    jobs = RayJobs(cluster.address)
    active = [job for job in jobs_of(jobs, run, warehouse) if not job.is_over]
    if not active:
        raise UsageError(f"run={run}: no job of it is running there, so there is nothing to stop")
    if len({job.metadata.get("warehouse") for job in active}) > 1:
        raise UsageError(f"run={run}: running for several warehouses; add warehouse=...")
    ended = jobs.stop(active[-1].id, 2 * _SECONDS_TO_STOP + 60 * cluster.grace_minutes)
    if ended is None or not ended.is_over:
        raise UsageError(f"run={run}: job {active[-1].id} does not end; see its head's dashboard")
    if ended.status == "STOPPED":
        print_to_stderr(f"job {ended.id}: stopped; to resume, submit the same run again")
    else:
        print_to_stderr(f"job {ended.id} had ended by itself: {ended.status.lower()}")
    return Submission(run, ended.id, ended.status, 0)


def _exit_code(job: Job) -> int:
    """The command's exit code: 0 only if the run is complete."""
    if job.status == "SUCCEEDED":
        return 0
    if job.status == "STOPPED":
        print_to_stderr(f"job {job.id} was stopped; run the same command to resume")
        return INCOMPLETE
    why = f"exit code {job.exit_code}"
    if job.exit_code is None:
        why = " ".join(job.message.split("\n", 1)[0].split())
    print_to_stderr(f"job {job.id} failed: {why}")
    return job.exit_code if job.exit_code in _DRIVERS_OWN else 1
