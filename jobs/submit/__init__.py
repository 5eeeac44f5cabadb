"""`gistmill submit`: submit a run to a running Ray cluster, or as a RayJob or Slurm script."""

import shlex
from collections.abc import Sequence
from typing import TextIO

from jobs.config.clusters import KubeRayCluster, RayCluster, is_here
from jobs.config.run_config import RunConfig
from jobs.graph.read_config import read_config
from jobs.submit.manifests import dns_name, hand_over, rayjob, slurm_script
from jobs.submit.package import command, refuse_unshared, words_on_cluster
from jobs.submit.submission import INCOMPLETE, Submission, print_to_stderr
from pipeline.core.errors import UsageError


def submit(words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit the run to its cluster. A Ray job is followed into `log` unless that is None.

    The exit code is 0 only if the run is complete, so never for RayJobs and Slurm scripts.
    """
    config, words = _read(words)
    if isinstance(config.cluster, RayCluster):
        from jobs.submit.submit_ray_job import send  # imported here, as ray takes a second

        return send(config, words, log)
    text = _rendered(config, words)
    if isinstance(config.cluster, KubeRayCluster):
        answer = hand_over(text, ["kubectl", "create", "-f", "-"])
        where = f"{dns_name(config.run_name())} -n {config.cluster.namespace}"
        then = f"kubectl get rayjob {where} shows it, kubectl delete rayjob {where} stops it"
    else:
        answer = hand_over(text, ["sbatch"])
        then = (
            f"squeue --name gistmill-{config.run_name()} shows it, "
            "scancel --batch --signal=TERM JOB stops it gracefully"
        )
    status = shlex.join(["gistmill", "status", f"warehouse={config.warehouse}"])
    print_to_stderr(f"{answer}. {then}; {status} run={config.run_name()}")
    return Submission(config.run_name(), answer, "SENT", INCOMPLETE)


def rendered(words: Sequence[str]) -> str:
    """The text that `submit` would send: a command, a manifest or a script."""
    return _rendered(*_read(words))


def _rendered(config: RunConfig, words: Sequence[str]) -> str:
    if isinstance(config.cluster, RayCluster):
        refuse_unshared(config)
        there = words_on_cluster(config, words, lambda key, path: f"files/{key}/{path.name}")
        return command(["-m", "jobs", "run", *there]) + "\n"
    make = rayjob if isinstance(config.cluster, KubeRayCluster) else slurm_script
    return make(config, words)


def stop(words: Sequence[str]) -> Submission:
    """Stop the job of a run. Raises UsageError if there is nothing to stop."""
    config, words = _read(words)
    if not isinstance(config.cluster, RayCluster):
        raise UsageError(
            f"--stop: {config.cluster.name} ends its jobs itself; kubectl delete rayjob "
            f"{dns_name(config.run_name())}, or scancel --name gistmill-{config.run_name()}"
        )
    from jobs.submit.submit_ray_job import stop as stop_job

    named = any(word.startswith("warehouse=") for word in words)
    return stop_job(config.cluster, config.run_name(), config.warehouse if named else None)


def _read(words: Sequence[str]) -> tuple[RunConfig, Sequence[str]]:
    """The config, and the words with a kind of cluster: ray by default."""
    if not any(word.startswith("cluster=") for word in words):
        words = ["cluster=ray", *words]
    config = read_config(words)
    if is_here(config.cluster):
        raise UsageError(f"cluster={config.cluster.name}: use gistmill run on this machine")
    return config, words
