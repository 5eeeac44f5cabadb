"""Submits a run as a job of a running Ray cluster, and follows it to its end."""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from upath import UPath

from jobs.config.run_config import RayCluster
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.launch import commit_variable
from jobs.submit.package import (
    INCOMPLETE,
    Submission,
    command,
    pack,
    print_to_stderr,
    refuse_unshared,
    words_on_cluster,
)
from pipeline.cluster.ray_jobs import RayJobs
from pipeline.files.storage import as_path, is_remote, refuse_unreachable_path

_SECONDS_TO_STOP = 30  # in addition to the run's grace period
_EXIT_CODES_OF_RUN = (1, 2, 3, 4)


def send(resolved: ResolvedRun, words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit the run, unless it is running there already, and follow it into `log`. Raises
    UsageError if it was not submitted, EngineError if the head is lost or has lost the job."""
    config = resolved.config
    assert isinstance(config.cluster, RayCluster)
    refuse_unshared(config)
    jobs, run = RayJobs(config.cluster.address), resolved.name
    jobs_of_run = [job for job in jobs.all() if job.id.rpartition("-")[0] == f"gistmill-{run}"]
    active = [
        job.id
        for job in jobs_of_run
        if not job.is_over and job.metadata.get("warehouse") == _normal(config.warehouse)
    ]
    if active:
        job_id = active[-1]
        print_to_stderr(f"run {run} is running there already, as job {job_id}")
    else:
        last = max((int(job.id.rpartition("-")[2]) for job in jobs_of_run), default=0)
        job_id = f"gistmill-{run}-{last + 1}"
        _send(jobs, job_id, resolved, words)
        print_to_stderr(f"sent run {run} as job {job_id}")
    left = Submission(run, job_id, "SENT", INCOMPLETE)
    stop = f"ray job stop --address {jobs.address} {job_id}"
    how = f"The same command follows it again; {stop} stops it"
    if log is None:
        print_to_stderr(how)
        return left
    try:
        ended = jobs.follow(job_id, lambda text: print(text, end="", file=log, flush=True))
    except KeyboardInterrupt:
        print_to_stderr(f"job {job_id} keeps running. {how}")
        return left
    exit_code = {"SUCCEEDED": 0, "STOPPED": INCOMPLETE}.get(ended.status, 1)
    if ended.status == "STOPPED":
        print_to_stderr(f"job {job_id} was stopped; run the same command to resume")
    elif ended.status != "SUCCEEDED":
        why = f"exit code {ended.exit_code}"
        if ended.exit_code is None:
            why = " ".join(ended.message.split("\n", 1)[0].split())
        print_to_stderr(f"job {job_id} failed: {why}")
        if ended.exit_code in _EXIT_CODES_OF_RUN:
            exit_code = ended.exit_code
    return Submission(run, job_id, ended.status, exit_code)


def _send(jobs: RayJobs, job_id: str, resolved: ResolvedRun, words: Sequence[str]) -> None:
    warehouse, cluster = resolved.config.warehouse, resolved.config.cluster
    assert isinstance(cluster, RayCluster)
    seconds = round(_SECONDS_TO_STOP + 60 * cluster.grace_minutes)  # until Ray kills a stopped job
    env_vars = {"RAY_JOB_STOP_WAIT_TIME_S": str(seconds), **commit_variable()}
    env_vars |= cluster.runtime_env.get("env_vars", {})
    runtime_env = {**cluster.runtime_env, "env_vars": env_vars}
    facts = {"run": resolved.name, "warehouse": _normal(warehouse)}
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        there = words_on_cluster(resolved, words, pack(Path(folder)))
        begin = command_at(as_path(warehouse), ["-m", "gistmill", "run", *there])
        jobs.send(job_id, begin, Path(folder), runtime_env, facts)


def command_at(warehouse: UPath, words: Sequence[str]) -> str:
    """The command of a job, which ends in exit code 2 on a machine without the warehouse's folder;
    here that is made."""
    if is_remote(warehouse):
        return command(words)
    with refuse_unreachable_path(warehouse, "warehouse"):
        warehouse.mkdir(parents=True, exist_ok=True)
    return f"ls -d {shlex.quote(str(warehouse))} > /dev/null && {command(words)}"


def _normal(warehouse: str) -> str:
    """Equal for all spellings of an address, such as with a trailing slash."""
    return str(as_path(warehouse)).rstrip("/")
