"""Render a run as a RayJob manifest for KubeRay or as a Slurm script, and submit it."""

import importlib.metadata
import math
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.config.clusters import KubeRayCluster, SlurmCluster, deadline
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.provenance import commit_variable
from jobs.submit.overlay import with_overlay
from jobs.submit.package import command, gpus_of_a_machine, words_in_place
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha

_LONGEST_NAME = 38  # characters; with `gistmill-` before it 47, KubeRay's limit
_SECONDS_TO_ANSWER = 60
_SECONDS_AFTER_DEADLINE = 600


class _Quoted(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """A YAML dumper that writes every string in double quotes."""


_Quoted.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def rayjob(run: ResolvedRun, words: Sequence[str]) -> str:
    """The manifest of a RayJob."""
    config, cluster = run.config, run.config.cluster
    assert isinstance(cluster, KubeRayCluster)
    there = words_in_place(run, words)
    env_vars = {**commit_variable(), **cluster.runtime_env.get("env_vars", {})}
    text = _rendered(
        "kuberay/rayjob.yaml.jinja",
        cluster=cluster,
        run=run.name,
        name=dns_name(run.name),
        warehouse=config.warehouse,
        entrypoint=command(["-m", "jobs.cli.rayjob_entry", "run", *there]),
        runtime_env=yaml.safe_dump({**cluster.runtime_env, "env_vars": env_vars}),
        ray_version=importlib.metadata.version("ray"),
        gpus=gpus_of_a_machine(config),
        least=0 if cluster.autoscales else cluster.max_workers,
        active_seconds=_active_seconds(cluster),
    )
    if cluster.overlay is None:
        return text
    merged = with_overlay(yaml.safe_load(text), Path(cluster.overlay))
    return str(yaml.dump(merged, Dumper=_Quoted, sort_keys=False, width=math.inf))


def _active_seconds(cluster: KubeRayCluster) -> int | None:
    """The time that KubeRay gives each start of the job. The run itself ends at its deadline; this
    is for a run that cannot, because its head hangs or no pod is ever placed."""
    if cluster.active_deadline_seconds or cluster.deadline is None:
        return cluster.active_deadline_seconds
    now = datetime.now()
    seconds = deadline(cluster.deadline, now).timestamp() - now.timestamp()
    return min(round(seconds) + _SECONDS_AFTER_DEADLINE, 2**31 - 1)


def slurm_script(run: ResolvedRun, words: Sequence[str]) -> str:
    """The script for sbatch."""
    cluster = run.config.cluster
    assert isinstance(cluster, SlurmCluster)
    there = words_in_place(run, words)
    return _rendered(
        "slurm/run.sh.jinja",
        cluster=cluster,
        name=f"gistmill-{run.name}",
        words=command(["-m", "jobs", "run", *there]).removeprefix("exec python "),
        gpus=gpus_of_a_machine(run.config),
    )


def hand_over(text: str, to: Sequence[str]) -> str:
    """Pipe a rendered file to `kubectl` or `sbatch`; returns its output.

    Raises UsageError if it is not installed, fails or does not answer.
    """
    if shutil.which(to[0]) is None:
        raise UsageError(f"{to[0]}: not installed here; --print shows what would be submitted")
    try:
        done = subprocess.run(
            to, input=text, capture_output=True, text=True, timeout=_SECONDS_TO_ANSWER, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{to[0]}: no answer in {_SECONDS_TO_ANSWER} seconds") from None
    if done.returncode:
        raise UsageError(f"{to[0]}: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def dns_name(run: str) -> str:
    """The run's name in Kubernetes, unique per run."""
    label = re.sub(r"[^a-z0-9]+", "-", run).strip("-")
    if label != run or len(label) > _LONGEST_NAME:
        label = f"{label[: _LONGEST_NAME - 9].rstrip('-')}-{sha(run, 8)}"
    return f"gistmill-{label}"


def _rendered(template: str, **fields: Any) -> str:
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["quoted"] = _quoted
    return environment.get_template(template).render(fields)


def _quoted(value: Any) -> str:
    """A value as YAML on one line."""
    text = yaml.dump(value, Dumper=_Quoted, default_flow_style=True, width=math.inf)
    return str(text).removesuffix("...\n").strip()
