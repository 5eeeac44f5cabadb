"""A run as a job of a Ray that is up: sent, followed to its end, stopped.

Exit codes are those of `gistmill run`; 0 only where the run is complete. Whoever stops looking gets
4, as the run is not complete then, and so does a job that was stopped.
"""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from jobs.clusters import RayCluster
from jobs.config import RunConfig
from jobs.provenance import sent_from
from jobs.submit.marker import mark, run_of, unmark
from jobs.submit.package import command, pack, refuse_unshared, words_there
from jobs.submit.submission import INCOMPLETE, Submission, tell
from pipeline.cluster.ray_jobs import Job, RayJobs
from pipeline.errors import UsageError
from pipeline.place import place

_SECONDS_TO_STOP = 30  # beside what a run has to end well
_DRIVERS_OWN = (1, 2, 3, 4)


def send(config: RunConfig, words: Sequence[str], log: TextIO | None) -> Submission:
    """Send the run, unless it is at work there already, and follow it into `log`; null: do not.

    Raises UsageError where nothing was sent, EngineError where the job is lost sight of.
    """
    assert isinstance(config.cluster, RayCluster)
    refuse_unshared(config)
    jobs = RayJobs(config.cluster.address)
    run, warehouse = config.run_name(), place(config.warehouse)
    if active := [job for job in jobs_of(jobs, run, config.warehouse) if not job.is_over]:
        job_id = active[-1].id
        tell(f"run {run} is at work there already, as job {job_id}")
    else:
        job_id = _send(jobs, config, words)
        tell(f"sent run {run} as job {job_id}")
    left = Submission(run, job_id, "SENT", INCOMPLETE)
    if log is None:
        tell(_how_to_go_on(jobs.address, run))
        return left
    try:
        ended = jobs.follow(job_id, lambda text: print(text, end="", file=log, flush=True))
    except KeyboardInterrupt:
        tell(f"job {job_id} goes on without you. {_how_to_go_on(jobs.address, run)}")
        return left
    unmark(warehouse, run)
    return Submission(run, job_id, ended.status, _exit_code(ended))


def _send(jobs: RayJobs, config: RunConfig, words: Sequence[str]) -> str:
    """The id of the job that was started."""
    assert isinstance(config.cluster, RayCluster)
    run, warehouse = config.run_name(), place(config.warehouse)
    numbers = [int(job.id.rpartition("-")[2]) for job in jobs_of(jobs, run, None)]
    job_id = f"gistmill-{run}-{max(numbers, default=0) + 1}"
    with tempfile.TemporaryDirectory(prefix="gistmill-") as folder:
        there = words_there(config, words, pack(Path(folder)))
        begin = ["-m", "jobs.submit.job_entry", job_id, config.warehouse, *there]
        mark(warehouse, run, job_id)
        try:
            jobs.send(
                job_id,
                command(begin),
                Path(folder),
                _runtime_env(config.cluster),
                {"run": run, "warehouse": config.warehouse},
            )
        except UsageError:
            unmark(warehouse, run)
            raise
    return job_id


def _runtime_env(cluster: RayCluster) -> dict[str, object]:
    """The user's, with what Ray's own process for the job has to know."""
    seconds = round(_SECONDS_TO_STOP + 60 * cluster.grace_minutes)  # then Ray kills it
    own = {"RAY_JOB_STOP_WAIT_TIME_S": str(seconds), **sent_from()}
    return {**cluster.runtime_env, "env_vars": {**own, **cluster.runtime_env.get("env_vars", {})}}


def jobs_of(jobs: RayJobs, run: str, warehouse: str | None) -> list[Job]:
    """Those that were sent for the run, oldest first; null: into any warehouse."""
    ours = [job for job in jobs.all() if job.id.startswith("gistmill-") and run_of(job.id) == run]
    return [job for job in ours if warehouse in (None, job.metadata.get("warehouse"))]


def job_state(address: str, run: str, warehouse: str | None = None) -> Job | None:
    """The last job that was sent for a run; null where there is none.

    Raises UsageError where the head cannot be asked.
    """
    return next(reversed(jobs_of(RayJobs(address), run, warehouse)), None)


def stop(cluster: RayCluster, run: str, warehouse: str | None) -> Submission:
    """Stop the job of the run that is at work, and wait until it is.

    Raises UsageError where there is none, or it does not end.
    """
    jobs = RayJobs(cluster.address)
    active = [job for job in jobs_of(jobs, run, warehouse) if not job.is_over]
    if not active:
        raise UsageError(f"run={run}: no job of it is at work there, so there is nothing to stop")
    if len({job.metadata.get("warehouse") for job in active}) > 1:
        raise UsageError(f"run={run}: at work for several warehouses; add warehouse=...")
    ended = jobs.stop(active[-1].id, 2 * _SECONDS_TO_STOP + 60 * cluster.grace_minutes)
    if ended is None or not ended.is_over:
        raise UsageError(f"run={run}: job {active[-1].id} does not end; see its head's dashboard")
    if ended.status == "STOPPED":
        tell(f"job {ended.id}: stopped; to go on, send the same run again")
    else:
        tell(f"job {ended.id} had ended by itself: {ended.status.lower()}")
    return Submission(run, ended.id, ended.status, 0)


def _exit_code(job: Job) -> int:
    """0 where the run is complete and nowhere else."""
    if job.status == "SUCCEEDED":
        return 0
    if job.status == "STOPPED":
        tell(f"job {job.id} was stopped; the same command goes on from here")
        return INCOMPLETE
    why = " ".join(job.message.split("\n", 1)[0].split()) if job.exit_code is None else ""
    how = f"exit code {job.exit_code}" if job.exit_code is not None else why
    tell(f"job {job.id} failed: {how}")
    return job.exit_code if job.exit_code in _DRIVERS_OWN else 1


def _how_to_go_on(address: str, run: str) -> str:
    there = shlex.join([f"run={run}", f"cluster.address={address}"])
    return f"The same command follows it again; gistmill submit --stop {there} stops it"
