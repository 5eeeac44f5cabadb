"""A run as a RayJob manifest for KubeRay."""

import importlib.metadata
import re
from collections.abc import Sequence

import yaml

from jobs.config.run_config import KubeRayCluster
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.launch import commit_variable
from jobs.submit.package import command, filled_template, gpus_of_a_machine, words_in_place
from pipeline.core.settings import sha

_LONGEST_NAME = 38  # characters; with `gistmill-` before it 47, KubeRay's limit


def rayjob(run: ResolvedRun, words: Sequence[str]) -> str:
    config, cluster = run.config, run.config.cluster
    assert isinstance(cluster, KubeRayCluster)
    there = words_in_place(run, words)
    env_vars = {**commit_variable(), **cluster.runtime_env.get("env_vars", {})}
    return filled_template(
        "rayjob.yaml.jinja",
        cluster=cluster,
        run=run.name,
        name=dns_name(run.name),
        warehouse=config.warehouse,
        entrypoint=command(["-m", "jobs.cli.job_entry", "run", *there]),
        runtime_env=yaml.safe_dump({**cluster.runtime_env, "env_vars": env_vars}),
        ray_version=importlib.metadata.version("ray"),
        gpus=gpus_of_a_machine(config),
        least=0 if cluster.autoscales else cluster.max_workers,
    )


def dns_name(run: str) -> str:
    """The run's name in Kubernetes, unique per run."""
    label = re.sub(r"[^a-z0-9]+", "-", run).strip("-")
    if label != run or len(label) > _LONGEST_NAME:
        label = f"{label[: _LONGEST_NAME - 9].rstrip('-')}-{sha(run, 8)}"
    return f"gistmill-{label}"
