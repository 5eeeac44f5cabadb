"""`gistmill submit`: a run sent to a Ray that is up, or made into a RayJob or a Slurm script."""

import shlex
from collections.abc import Sequence
from typing import TextIO

from jobs.clusters import KubeRayCluster, RayCluster
from jobs.config import RunConfig, read_config
from jobs.submit.manifests import dns_name, hand_over, rayjob, slurm_script
from jobs.submit.package import command, refuse_unshared, words_there
from jobs.submit.submission import INCOMPLETE, Submission, tell
from pipeline.errors import UsageError


def submit(words: Sequence[str], log: TextIO | None) -> Submission:
    """Send the run to its cluster, and follow a Ray's job into `log`; null: do not. The exit code
    is 0 only where the run is complete: one that was handed over is not."""
    config, words = _read(words)
    if isinstance(config.cluster, RayCluster):
        from jobs.submit.ray_job import send  # here: ray takes a second to import

        return send(config, words, log)
    text = rendered(words)
    if isinstance(config.cluster, KubeRayCluster):
        said = hand_over(text, ["kubectl", "create", "-f", "-"])
        where = f"{dns_name(config.run_name())} -n {config.cluster.namespace}"
        then = f"kubectl get rayjob {where} shows it, kubectl delete rayjob {where} ends it"
    else:
        said = hand_over(text, ["sbatch"])
        then = (
            f"squeue --name gistmill-{config.run_name()} shows it, "
            "scancel --batch --signal=TERM JOB ends it well"
        )
    status = shlex.join(["gistmill", "status", f"warehouse={config.warehouse}"])
    tell(f"{said}. {then}; {status} run={config.run_name()}")
    return Submission(config.run_name(), said, "SENT", INCOMPLETE)


def rendered(words: Sequence[str]) -> str:
    """What would be sent, as text."""
    config, words = _read(words)
    if isinstance(config.cluster, RayCluster):
        refuse_unshared(config)
        there = words_there(config, words, lambda key, path: f"files/{key}/{path.name}")
        return command(["-m", "jobs", "run", *there]) + "\n"
    make = rayjob if isinstance(config.cluster, KubeRayCluster) else slurm_script
    return make(config, words)


def stop(words: Sequence[str]) -> Submission:
    """Stop the job of a run. Raises UsageError where there is nothing to stop."""
    config, words = _read(words)
    if not isinstance(config.cluster, RayCluster):
        raise UsageError(
            f"--stop: {config.cluster.name} ends its jobs itself; kubectl delete rayjob "
            f"{dns_name(config.run_name())}, or scancel --name gistmill-{config.run_name()}"
        )
    from jobs.submit.ray_job import stop as stop_job

    named = any(word.startswith("warehouse=") for word in words)
    return stop_job(config.cluster, config.run_name(), config.warehouse if named else None)


def _read(words: Sequence[str]) -> tuple[RunConfig, Sequence[str]]:
    """The config, and the words with the kind of cluster among them: ray unless they say."""
    if not any(word.startswith("cluster=") for word in words):
        words = ["cluster=ray", *words]
    config = read_config(words)
    if config.cluster.name == "local":
        raise UsageError("cluster=local: gistmill run works on this machine")
    return config, words
