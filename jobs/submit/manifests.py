"""Renders a run as a RayJob manifest for KubeRay, into which the YAML file `cluster.overlay` is
merged, or as a Slurm script, and submits it."""

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
from jobs.submit.package import command, gpus_of_a_machine, words_in_place
from pipeline.core.errors import UsageError
from pipeline.core.settings import sha

_LONGEST_NAME = 38  # characters; with `gistmill-` before it 47, KubeRay's limit
_SECONDS_TO_ANSWER = 60
_SECONDS_AFTER_DEADLINE = 600
_SECTIONS = ("metadata", "spec")  # of an overlay
_KEYS = ("name", "groupName")  # by these, elements of a list are matched, as Kubernetes does


class _Quoted(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """A YAML dumper that writes every string in double quotes."""


_Quoted.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def rayjob(run: ResolvedRun, words: Sequence[str]) -> str:
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
    merged = _with_overlay(yaml.safe_load(text), Path(cluster.overlay))
    return str(yaml.dump(merged, Dumper=_Quoted, sort_keys=False, width=math.inf))


def _with_overlay(manifest: dict[str, Any], file: Path) -> dict[str, Any]:
    """The manifest with the file's values over its own.

    Sections are merged key by key, lists of named elements (containers, env, volumes, worker
    groups) name by name; any other list or value replaces the manifest's, and a YAML null removes
    it. Raises UsageError if the file is no such section, or has a section in place of a value.
    """
    content = _read_overlay(file)
    for key, section in content.items():
        if key not in _SECTIONS:
            raise UsageError(f"{file}: {key}: no section; an overlay has {', '.join(_SECTIONS)}")
        if section is not None and not isinstance(section, dict):
            raise UsageError(
                f"{file}: {key}: the manifest has a section there, not {_kind(section)}"
            )
    if {"name", "namespace"} & {*(content.get("metadata") or {})}:
        raise UsageError(f"{file}: metadata: the run names the job; set run=, cluster.namespace=")
    made: dict[str, Any] = _merged(manifest, content, str(file))
    return made


def _read_overlay(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cluster.overlay={file}: {error.strerror}; name a YAML file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: of a date
        raise UsageError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{file}: write sections, such as metadata: {{labels: ...}}")
    return content


def _merged(below: Any, above: Any, place: str) -> Any:
    """`above` over `below`; `place` names them in errors."""
    if below is None or above is None:
        return above
    if _kind(below) != _kind(above):
        raise UsageError(f"{place}: the manifest has {_kind(below)} there, not {_kind(above)}")
    if isinstance(above, dict):
        values = {k: _merged(below.get(k), v, f"{place}: {k}") for k, v in above.items()}
        return {k: v for k, v in {**below, **values}.items() if v is not None}
    if isinstance(above, list) and (key := _key(below)) and key == _key(above):
        named = {one[key]: one for one in below}
        for one in above:
            named[one[key]] = _merged(named.get(one[key]), one, f"{place}: {one[key]}")
        return [*named.values()]
    return above


def _key(elements: list[Any]) -> str | None:
    """The key that names each element of a list; None if there is none."""
    for key in _KEYS:
        if elements and all(isinstance(e, dict) and isinstance(e.get(key), str) for e in elements):
            return key
    return None


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "a section"
    return "a list" if isinstance(value, list) else "a value"


def _active_seconds(cluster: KubeRayCluster) -> int | None:
    """The seconds that KubeRay gives each start of the job. The run itself ends at its deadline;
    this limits a run that cannot, because its head hangs or no pod is ever placed."""
    if cluster.active_deadline_seconds or cluster.deadline is None:
        return cluster.active_deadline_seconds
    now = datetime.now()
    seconds = deadline(cluster.deadline, now).timestamp() - now.timestamp()
    return min(round(seconds) + _SECONDS_AFTER_DEADLINE, 2**31 - 1)


def slurm_script(run: ResolvedRun, words: Sequence[str]) -> str:
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

    Raises UsageError if the command is not installed, fails or does not answer.
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
    text = yaml.dump(value, Dumper=_Quoted, default_flow_style=True, width=math.inf)
    return str(text).removesuffix("...\n").strip()
