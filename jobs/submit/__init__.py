"""`gistmill submit`: submits a run to a running Ray cluster, or as a RayJob or Slurm script."""

import shlex
from collections.abc import Sequence
from typing import TextIO

from jobs.config.run_config import KubeRayCluster, RayCluster
from jobs.graph.resolved_run import ResolvedRun, read_run
from jobs.submit.kuberay import dns_name, rayjob
from jobs.submit.package import (
    INCOMPLETE,
    Submission,
    command,
    hand_over,
    print_to_stderr,
    refuse_unshared,
    words_on_cluster,
)
from pipeline.core.errors import UsageError


def submit(words: Sequence[str], log: TextIO | None) -> Submission:
    """Submit, and follow a Ray job into `log`. The exit code is 0 only if the run is complete."""
    run, words = _read(words)
    config = run.config
    if isinstance(config.cluster, RayCluster):
        from jobs.submit.ray_job import send  # imported here, as ray takes a second

        return send(run, words, log)
    if isinstance(config.cluster, KubeRayCluster):
        answer = hand_over(["kubectl", "create", "-f", "-"], _manifest(run, words))
        where = f"{dns_name(run.name)} -n {config.cluster.namespace}"
        then = f"kubectl get rayjob {where} shows it, kubectl delete rayjob {where} stops it"
    else:
        answer = hand_over(["sbatch"], _manifest(run, words))
        then = (
            f"squeue --name gistmill-{run.name} shows it, "
            "scancel --batch --signal=TERM JOB stops it gracefully"
        )
    status = shlex.join(["gistmill", "status", f"warehouse={config.warehouse}"])
    print_to_stderr(f"{answer}. {then}; {status} run={run.name}")
    return Submission(run.name, answer, "SENT", INCOMPLETE)


def rendered(words: Sequence[str]) -> str:
    run, words = _read(words)
    if not isinstance(run.config.cluster, RayCluster):
        return _manifest(run, words)
    refuse_unshared(run.config)
    there = words_on_cluster(run, words, lambda key, path: f"files/{key}/{path.name}")
    return command(["-m", "gistmill", "run", *there]) + "\n"


def _manifest(run: ResolvedRun, words: Sequence[str]) -> str:
    from jobs.submit.slurm import slurm_script  # imported here, as the module is a command, too

    is_kuberay = isinstance(run.config.cluster, KubeRayCluster)
    return rayjob(run, words) if is_kuberay else slurm_script(run, words)


def _read(words: Sequence[str]) -> tuple[ResolvedRun, Sequence[str]]:
    if not any(word.startswith("cluster=") for word in words):
        words = ["cluster=ray", *words]
    run = read_run(words)
    if run.config.cluster.name in ("inline", "local"):
        raise UsageError(f"cluster={run.config.cluster.name}: use gistmill run on this machine")
    return run, words
