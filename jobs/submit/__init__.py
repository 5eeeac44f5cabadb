"""`gistmill submit`: submits a run to a running Ray cluster, or as a RayJob or Slurm script."""

import shlex
from collections.abc import Sequence
from typing import TextIO

from jobs.config.clusters import KubeRayCluster, RayCluster, is_here
from jobs.graph.read_run import read_run
from jobs.graph.resolved_run import ResolvedRun
from jobs.submit.manifests import dns_name, hand_over, rayjob, slurm_script
from jobs.submit.package import command, refuse_unshared, words_on_cluster
from jobs.submit.submission import INCOMPLETE, Submission, print_to_stderr
from pipeline.core.errors import UsageError


def submit(words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit the run to its cluster. A Ray job is followed into `log` unless that is None.

    The exit code is 0 only if the run is complete, so never for RayJobs and Slurm scripts.
    """
    run, words = _read(words)
    if isinstance(run.config.cluster, RayCluster):
        from jobs.submit.submit_ray_job import send  # imported here, as ray takes a second

        return send(run, words, log)
    text = _rendered(run, words)
    config = run.config
    if isinstance(config.cluster, KubeRayCluster):
        answer = hand_over(text, ["kubectl", "create", "-f", "-"])
        where = f"{dns_name(run.name)} -n {config.cluster.namespace}"
        then = f"kubectl get rayjob {where} shows it, kubectl delete rayjob {where} stops it"
    else:
        answer = hand_over(text, ["sbatch"])
        then = (
            f"squeue --name gistmill-{run.name} shows it, "
            "scancel --batch --signal=TERM JOB stops it gracefully"
        )
    status = shlex.join(["gistmill", "status", f"warehouse={config.warehouse}"])
    print_to_stderr(f"{answer}. {then}; {status} run={run.name}")
    return Submission(run.name, answer, "SENT", INCOMPLETE)


def rendered(words: Sequence[str]) -> str:
    """The text that `submit` would send: a command, a manifest or a script."""
    return _rendered(*_read(words))


def _rendered(run: ResolvedRun, words: Sequence[str]) -> str:
    if isinstance(run.config.cluster, RayCluster):
        refuse_unshared(run.config)
        there = words_on_cluster(run, words, lambda key, path: f"files/{key}/{path.name}")
        return command(["-m", "jobs", "run", *there]) + "\n"
    make = rayjob if isinstance(run.config.cluster, KubeRayCluster) else slurm_script
    return make(run, words)


def stop(words: Sequence[str]) -> Submission:
    """Stop the job of a run. Raises UsageError if there is nothing to stop."""
    run, words = _read(words)
    config = run.config
    if not isinstance(config.cluster, RayCluster):
        raise UsageError(
            f"--stop: {config.cluster.name} ends its jobs itself; kubectl delete rayjob "
            f"{dns_name(run.name)}, or scancel --name gistmill-{run.name}"
        )
    from jobs.submit.submit_ray_job import stop as stop_job

    named = any(word.startswith("warehouse=") for word in words)
    return stop_job(config.cluster, run.name, config.warehouse if named else None)


def _read(words: Sequence[str]) -> tuple[ResolvedRun, Sequence[str]]:
    """Without a kind of cluster, the words get cluster=ray."""
    if not any(word.startswith("cluster=") for word in words):
        words = ["cluster=ray", *words]
    run = read_run(words)
    if is_here(run.config.cluster):
        raise UsageError(f"cluster={run.config.cluster.name}: use gistmill run on this machine")
    return run, words
