"""A run as a RayJob manifest for KubeRay. kustomize patches it with the file `cluster.overlay`."""

import importlib.metadata
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from pydantic import BaseModel

from jobs.config.run_config import KubeRayCluster
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.launch import commit_variable
from jobs.submit.package import (
    command,
    filled_template,
    gpus_of_a_machine,
    hand_over,
    words_in_place,
)
from pipeline.core.errors import UsageError
from pipeline.core.settings import read_yaml, sha

_LONGEST_NAME = 38  # characters; with `gistmill-` before it 47, KubeRay's limit


def rayjob(run: ResolvedRun, words: Sequence[str]) -> str:
    config, cluster = run.config, run.config.cluster
    assert isinstance(cluster, KubeRayCluster)
    there = words_in_place(run, words)
    env_vars = {**commit_variable(), **cluster.runtime_env.get("env_vars", {})}
    manifest = filled_template(
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
    return _patched(manifest, Path(cluster.overlay)) if cluster.overlay else manifest


class _Overlay(BaseModel, extra="allow"):
    metadata: dict[str, Any] | None = None


def _patched(manifest: str, overlay: Path) -> str:
    """The manifest, merged by kustomize: lists of named elements by their names."""
    try:
        patch = read_yaml(overlay, _Overlay).model_dump()
    except ValueError as error:  # of a date
        raise UsageError(f"{overlay}: not YAML: {error}") from None
    job = yaml.safe_load(manifest)
    patch |= {"apiVersion": job["apiVersion"], "kind": job["kind"]}
    names = {key: job["metadata"][key] for key in ("name", "namespace")}
    patch["metadata"] = {**(patch["metadata"] or {}), **names}
    kustomization = {
        "resources": ["rayjob.yaml"],
        "patches": [{"patch": yaml.safe_dump(patch)}],
        "openapi": {"path": "rayjob_schema.json"},  # kustomize does not know RayJobs
    }
    with TemporaryDirectory(prefix="gistmill-") as folder:
        shutil.copy(Path(__file__).with_name("rayjob_schema.json"), folder)
        Path(folder, "rayjob.yaml").write_text(manifest, encoding="utf-8")
        Path(folder, "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
        return hand_over(["kubectl", "kustomize", folder]) + "\n"


def dns_name(run: str) -> str:
    """The run's name in Kubernetes, unique per run."""
    label = re.sub(r"[^a-z0-9]+", "-", run).strip("-")
    if label != run or len(label) > _LONGEST_NAME:
        label = f"{label[: _LONGEST_NAME - 9].rstrip('-')}-{sha(run, 8)}"
    return f"gistmill-{label}"
