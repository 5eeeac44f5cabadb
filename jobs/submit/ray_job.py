"""Submits a run as a job of a running Ray cluster, follows it to its end, or stops it.

The file <warehouse>/runs/.<run>.sent holds the id of a job that was sent; a job on other storage
than the submitter's does not find it, and refuses to run.
"""

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
from pipeline.cluster.ray_jobs import Job, RayJobs
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path, refuse_unreachable_path, write

_SECONDS_TO_STOP = 30  # in addition to the run's grace period
_EXIT_CODES_OF_RUN = (1, 2, 3, 4)


def send(resolved: ResolvedRun, words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit the run, unless it is running there already, and follow it into `log`. Raises
    UsageError if it was not submitted, EngineError if the head is lost or has lost the job."""
    config = resolved.config
    assert isinstance(config.cluster, RayCluster)
    refuse_unshared(config)
    jobs, run = RayJobs(config.cluster.address), resolved.name
    if active := [job for job in jobs_of(jobs, run, config.warehouse) if not job.is_over]:
        job_id = active[-1].id
        print_to_stderr(f"run {run} is running there already, as job {job_id}")
    else:
        job_id = _send(jobs, resolved, config.cluster, words)
        print_to_stderr(f"sent run {run} as job {job_id}")
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
    marker_of(as_path(config.warehouse), run).unlink(missing_ok=True)
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


def _send(jobs: RayJobs, resolved: ResolvedRun, cluster: RayCluster, words: Sequence[str]) -> str:
    run, warehouse = resolved.name, resolved.config.warehouse
    numbers = [int(job.id.rpartition("-")[2]) for job in jobs_of(jobs, run, None)]
    job_id = f"gistmill-{run}-{max(numbers, default=0) + 1}"
    seconds = round(_SECONDS_TO_STOP + 60 * cluster.grace_minutes)  # until Ray kills a stopped job
    env_vars = {"RAY_JOB_STOP_WAIT_TIME_S": str(seconds), **commit_variable()}
    env_vars |= cluster.runtime_env.get("env_vars", {})
    runtime_env = {**cluster.runtime_env, "env_vars": env_vars}
    facts = {"run": run, "warehouse": _normal(warehouse)}
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        there = words_on_cluster(resolved, words, pack(Path(folder)))
        begin = command(["-m", "jobs.cli.job_entry", job_id, warehouse, *there])
        # It stays if the head refuses: the reason may be another submit's job of the same id.
        with refuse_unreachable_path(as_path(warehouse), "warehouse"):
            write(marker_of(as_path(warehouse), run), job_id.encode())
        jobs.send(job_id, begin, Path(folder), runtime_env, facts)
    return job_id


def marker_of(warehouse: UPath, run: str) -> UPath:
    return warehouse / "runs" / f".{run}.sent"


def take_marker(warehouse: UPath, job_id: str) -> None:
    """Remove the marker. Raises UsageError if it is missing or of another job."""
    marker = marker_of(warehouse, _run_of(job_id))
    with refuse_unreachable_path(warehouse, "warehouse"):
        if not marker.is_file() or marker.read_text() != job_id:
            raise UsageError(
                f"warehouse={warehouse}: not the one that {job_id} was sent from; name storage "
                "that the cluster shares, s3://... or a folder that every machine mounts"
            )
        marker.unlink(missing_ok=True)


def _run_of(job_id: str) -> str:
    return job_id.removeprefix("gistmill-").rpartition("-")[0]


def jobs_of(jobs: RayJobs, run: str, warehouse: str | None) -> list[Job]:
    """The jobs submitted for the run, oldest first; `warehouse` None: for any warehouse."""
    return [
        job
        for job in jobs.all()
        if job.id.startswith("gistmill-") and _run_of(job.id) == run
        if warehouse is None or job.metadata.get("warehouse") == _normal(warehouse)
    ]


def _normal(warehouse: str) -> str:
    """Equal for all spellings of an address, such as with a trailing slash."""
    return str(as_path(warehouse)).rstrip("/")


def job_state(address: str, run: str, warehouse: str) -> Job | None:
    return next(reversed(jobs_of(RayJobs(address), run, warehouse)), None)


def stop(cluster: RayCluster, run: str, warehouse: str | None) -> Submission:
    """Stop the run's active job. Raises UsageError if there is none, or it does not end in time."""
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
