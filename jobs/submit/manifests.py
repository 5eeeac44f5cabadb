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

from jobs.clusters import KubeRayCluster, SlurmCluster
from jobs.deadline import deadline
from jobs.provenance import sent_from
from jobs.run_config import RunConfig
from jobs.submit.overlay import overlaid
from jobs.submit.package import (
    absolute,
    command,
    gpus_of_a_machine,
    refuse_unshared,
    words_there,
)
from pipeline.errors import UsageError
from pipeline.settings import sha

_LONGEST_NAME = 38  # characters; with `gistmill-` before it 47, KubeRay's limit
_SECONDS_TO_ANSWER = 60
_SECONDS_AFTER_DEADLINE = 600


class _Quoted(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Writes every string in double quotes."""


_Quoted.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def rayjob(config: RunConfig, words: Sequence[str]) -> str:
    """The manifest of a RayJob."""
    cluster = config.cluster
    assert isinstance(cluster, KubeRayCluster)
    refuse_unshared(config)
    there = words_there(config, words, absolute(config))
    env_vars = {**sent_from(), **cluster.runtime_env.get("env_vars", {})}
    text = _environment("kuberay").get_template("rayjob.yaml.jinja").render(
        cluster=cluster,
        run=config.run_name(),
        name=dns_name(config.run_name()),
        warehouse=config.warehouse,
        entrypoint=command(["-m", "jobs.submit.rayjob_entry", "run", *there]),
        runtime_env=yaml.safe_dump({**cluster.runtime_env, "env_vars": env_vars}),
        ray_version=importlib.metadata.version("ray"),
        gpus=gpus_of_a_machine(config),
        least=0 if cluster.autoscales else cluster.max_workers,
        active_seconds=_active_seconds(cluster),
    )  # fmt: skip
    if cluster.overlay is None:
        return text
    merged = overlaid(yaml.safe_load(text), Path(cluster.overlay))
    return str(yaml.dump(merged, Dumper=_Quoted, sort_keys=False, width=math.inf))


def _active_seconds(cluster: KubeRayCluster) -> int | None:
    """The time that KubeRay gives each start of the job. The run itself ends at its deadline; this
    is for one that cannot, as its head hangs or no pod is ever placed."""
    if cluster.active_deadline_seconds or cluster.deadline is None:
        return cluster.active_deadline_seconds
    now = datetime.now()
    seconds = deadline(cluster.deadline, now).timestamp() - now.timestamp()
    return min(round(seconds) + _SECONDS_AFTER_DEADLINE, 2**31 - 1)


def slurm_script(config: RunConfig, words: Sequence[str]) -> str:
    """The script for sbatch."""
    cluster = config.cluster
    assert isinstance(cluster, SlurmCluster)
    refuse_unshared(config)
    there = words_there(config, words, absolute(config))
    return _environment("slurm").get_template("run.sh.jinja").render(
        cluster=cluster,
        name=f"gistmill-{config.run_name()}",
        words=command(["-m", "jobs", "run", *there]).removeprefix("exec python "),
        gpus=gpus_of_a_machine(config),
    )  # fmt: skip


def hand_over(text: str, to: Sequence[str]) -> str:
    """Pipe a rendered file to `kubectl` or `sbatch`; its output.

    Raises UsageError where it is not installed, fails or does not answer.
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


def _environment(kind: str) -> Environment:
    folder = Path(__file__).parent.parent / kind
    made = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters["quoted"] = _quoted
    return made


def _quoted(value: Any) -> str:
    """A value as YAML on one line."""
    text = yaml.dump(value, Dumper=_Quoted, default_flow_style=True, width=math.inf)
    return str(text).removesuffix("...\n").strip()
