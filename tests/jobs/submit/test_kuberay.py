"""The manifest of `gistmill submit cluster=kuberay`, against the schema of KubeRay's CRD; and that
Ray shows a job as stopped after exit codes 2 and 4, so that KubeRay does not start it again."""

import json
import os
import re
import runpy
import shlex
import sys
import textwrap
from datetime import datetime
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import jsonschema
import pytest
import yaml

from jobs import cli
from jobs.config.run_config import deadline
from jobs.submit.kuberay import dns_name
from pipeline.cluster import ray_jobs
from tests.support.command import ROOT, gistmill, refused, succeed
from tests.support.docs.pages import blocks

SCHEMA = json.loads((ROOT / "tests" / "data" / "rayjob_schema.json").read_text())
WORDS = ["cluster=kuberay", "cluster.image=registry.example/gistmill:1", "warehouse=s3://b/w"]
VLLM = ["engine=vllm", "engine.model=some/model", "run=night"]
EVERYTHING = [
    *WORDS, *VLLM, "engine.args.tensor_parallel_size=4", "cluster.secret=s3-keys",
    "cluster.service_account=reader", "cluster.volume_claim=weights",
    "cluster.node_selector={cloud.google.com/gke-spot: 'true'}",
    "cluster.tolerations=[{key: spot, operator: Equal, value: 'yes', effect: NoSchedule}]",
    "cluster.runtime_env.pip=['some-package==1.0']", "cluster.stall_minutes=9.0",
    "cluster.model_cache=models",
]  # fmt: skip

needs_kubectl = pytest.mark.skipif(
    which("kubectl") is None and "CI" not in os.environ, reason="kubectl is not installed"
)


@cache
def manifest(*words: str) -> dict[str, Any]:
    """The manifest, which is one that the CRD takes."""
    job: dict[str, Any] = yaml.safe_load(succeed("submit", "--print", *words))
    jsonschema.validate(job, SCHEMA)
    return job


def pods(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The head's and the workers'."""
    cluster = job["spec"]["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    return cluster["headGroupSpec"]["template"]["spec"], group["template"]["spec"]


GPU = "nvidia.com/gpu"
OF_MEMORIES = [  # the engine that needs the most is here that of memories
    "engine=openai", "engine.base_url=http://h/v1", "engine.model=m", "memory_engine=vllm",
    "memory_engine.model=some/model", "memory_engine.args.tensor_parallel_size=2",
]  # fmt: skip
CLAIMS = [{"name": "shared", "persistentVolumeClaim": {"claimName": "weights"}},
          {"name": "model-cache", "persistentVolumeClaim": {"claimName": "models"}}]  # fmt: skip
MOUNTS = [{"name": "shared", "mountPath": "/shared"},
          {"name": "model-cache", "mountPath": "/model-cache"}]  # fmt: skip
SPOT = {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
FIXED = ["cluster.autoscales=false", "cluster.max_workers=3"]  # Kueue admits none that autoscales
HOST = {"path": "/mnt/my models", "type": "Directory"}


@pytest.mark.parametrize(
    ("words", "place", "value"),
    [
        (EVERYTHING, "group rayStartParams num-gpus", "4"),
        (EVERYTHING, f"worker resources limits {GPU}", 4),
        (OF_MEMORIES, f"worker resources limits {GPU}", 2),
        ([], f"worker resources limits {GPU}", None),
        (EVERYTHING, f"head resources limits {GPU}", None),
        (VLLM, "cluster headGroupSpec rayStartParams num-cpus", "0"),
        (EVERYTHING, "worker_pod nodeSelector", {"cloud.google.com/gke-spot": "true"}),
        (EVERYTHING, "head_pod nodeSelector", None),  # nobody takes the driver's node away
        (EVERYTHING, "worker_pod tolerations", [SPOT]),
        *((EVERYTHING, f"{pod}_pod serviceAccountName", "reader") for pod in ("head", "worker")),
        *((EVERYTHING, f"{pod}_pod volumes", CLAIMS) for pod in ("head", "worker")),
        *((EVERYTHING, f"{pod} volumeMounts", MOUNTS) for pod in ("head", "worker")),
        *((EVERYTHING, f"{pod} envFrom", [{"secretRef": {"name": "s3-keys"}}])
          for pod in ("head", "worker")),
        (EVERYTHING, "worker env", [{"name": "HF_HOME", "value": "/model-cache"}]),
        (["cluster.model_cache=/mnt/my models"], "worker_pod volumes 0 hostPath", HOST),
        ([], "worker_pod volumes", None),
        ([], "worker resources requests ephemeral-storage", "30Gi"),
        ([], "cluster authOptions", {"mode": "token"}),
        (["cluster.auth=null"], "cluster authOptions", None),
        ([], "job activeDeadlineSeconds", None),
        (["cluster.active_deadline_seconds=99"], "job activeDeadlineSeconds", 99),
        (FIXED, "cluster enableInTreeAutoscaling", False),
        *((FIXED, f"group {name}", 3) for name in ("replicas", "minReplicas", "maxReplicas")),
    ],
)  # fmt: skip
def test_a_setting_has_its_place(words: list[str], place: str, value: Any) -> None:
    job = manifest(*WORDS, *(word for word in words if word not in WORDS))
    cluster, (head, worker) = job["spec"]["rayClusterSpec"], pods(job)
    part: Any = {
        "job": job["spec"], "cluster": cluster, "group": cluster["workerGroupSpecs"][0],
        "head_pod": head, "worker_pod": worker,
        "head": head["containers"][0], "worker": worker["containers"][0],
    }  # fmt: skip
    for key in place.split():
        part = part[0] if key == "0" else part.get(key)
    assert part == value


@pytest.mark.parametrize(
    ("words", "workers"),
    [
        ([], 4),
        (["cluster.gpus=8"], 32),
        (["cluster.gpus=8", "engine.args.tensor_parallel_size=3"], 8),
        (["engine.gpus_per_worker=0.5"], 8),
        (["cluster.gpus=1", "engine.args.tensor_parallel_size=2"], 4),
    ],
)
def test_there_are_as_many_engines_as_the_pods_have_gpus_for(
    words: list[str], workers: int
) -> None:
    spec = manifest(*WORDS, *VLLM, "cluster.max_workers=4", *words)["spec"]
    assert f"engine.max_workers={workers}" in shlex.split(spec["entrypoint"])


@pytest.mark.parametrize("given", ["07:00", "2999-12-01T07:00:00+05:00"])
def test_a_deadline_is_the_same_for_every_start(given: str) -> None:
    spec = manifest(*WORDS, f"cluster.deadline={given}")["spec"]
    (word,) = [w for w in shlex.split(spec["entrypoint"]) if w.startswith("cluster.deadline=")]
    sent = datetime.fromisoformat(word.removeprefix("cluster.deadline="))
    assert sent.tzinfo is not None
    assert sent.timestamp() == deadline(given, datetime.now()).timestamp()


OVERLAY = """
metadata:
  labels: {kueue.x-k8s.io/queue-name: nights, team: "007"}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: null
  rayClusterSpec:
    workerGroupSpecs:
      - groupName: workers
        template:
          spec:
            tolerations: []
            containers:
              - name: ray-worker
                env:
                  - {name: HF_HOME, value: /elsewhere}
                  - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
"""


@needs_kubectl
def test_an_overlay_is_merged(tmp_path: Path) -> None:
    file = tmp_path / "my overlay.yaml"
    file.write_text(OVERLAY)
    (shown,) = blocks("docs/clusters.md", "yaml")
    (tmp_path / "page.yaml").write_text(textwrap.dedent(shown))
    of_page = manifest(*WORDS, f"cluster.overlay={tmp_path / 'page.yaml'}")
    assert pods(of_page)[1]["priorityClassName"] == "batch"
    plain, job = manifest(*EVERYTHING), manifest(*EVERYTHING, f"cluster.overlay={file}")
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "nights", "team": "007"}
    assert job["spec"]["backoffLimit"] == 0
    assert "ttlSecondsAfterFinished" not in job["spec"]
    head, worker = pods(job)
    assert head == pods(plain)[0]
    assert worker["tolerations"] == []
    assert worker["containers"][0]["env"] == [
        {"name": "HF_HOME", "value": "/elsewhere"},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
    ]
    assert worker["containers"][0]["image"] == "registry.example/gistmill:1"
    assert job["spec"]["entrypoint"] == plain["spec"]["entrypoint"], "it stays here"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "{file}: not YAML: while parsing a flow"),
        ("metadata: 3", "{file}: metadata: Input should be a valid dictionary"),
        pytest.param("spec: 3", "kubectl: ", marks=needs_kubectl),  # what kustomize says
    ],
)
def test_overlays_that_are_none(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "overlay.yaml"
    file.write_text(content)
    line = refused("submit", "--print", *WORDS, f"cluster.overlay={file}")
    assert line.startswith(says.format(file=file))


def test_the_job_joins_its_own_ray_and_is_tried_again() -> None:
    spec = manifest(*EVERYTHING)["spec"]
    assert shlex.split(spec["entrypoint"]) == [
        "exec", "python", "-m", "jobs.cli.job_entry", "run", "warehouse=s3://b/w", *VLLM[:2],
        "engine.args.tensor_parallel_size=4", "cluster.stall_minutes=9.0", "run=night",
        "cluster=ray", "cluster.address=auto", "cluster.autoscales=true",
        "cluster.wait_minutes=30.0", "engine.max_workers=8",
    ]  # fmt: skip
    assert spec["submissionMode"] == "HTTPMode"
    assert (spec["backoffLimit"], spec["shutdownAfterJobFinishes"]) == (3, True)
    assert spec["metadata"] == {"run": "night", "warehouse": "s3://b/w"}
    assert yaml.safe_load(spec["runtimeEnvYAML"])["pip"] == ["some-package==1.0"]
    refused_here = gistmill("run", *shlex.split(spec["entrypoint"])[5:], "limitt=1")
    assert "limitt: no such key" in refused_here.stderr  # all others are known


def test_every_run_has_a_name_of_its_own() -> None:
    runs = ("night", "a_night", "a-night", "a" * 38, "a" * 39, "a" * 37 + "-b", "a" * 37 + "_b")
    names = {dns_name(run) for run in runs}
    assert len(names) == len(runs)
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", name) for name in names)


def test_it_is_handed_to_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "kubectl"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    stub.write_text(f'#!/bin/sh\n[ "$*" = "create -f -" ] && cat > {tmp_path}/given')
    stub.chmod(0o755)
    done = gistmill("submit", *WORDS, "run=a_night")
    assert done.returncode == 4  # sent is not complete
    given = yaml.safe_load((tmp_path / "given").read_text())
    assert given == manifest(*WORDS, "run=a_night")
    shows = f"kubectl get rayjob {given['metadata']['name']} -n default shows it"
    assert shows in done.stderr
    stub.write_text('#!/bin/sh\necho "already exists\nsorry" >&2; exit 1')
    assert refused("submit", *WORDS) == "kubectl: already exists sorry"


@pytest.mark.parametrize("code", range(5))
def test_after_which_exit_codes(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(sys, "argv", ["job_entry", "run"])
    monkeypatch.setattr(cli, "main", lambda: sys.exit(code))
    monkeypatch.setattr(ray_jobs, "stop_this_job", lambda: stopped.append(True))
    with pytest.raises(SystemExit) as end:
        runpy.run_module("jobs.cli.job_entry", run_name="__main__")
    assert end.value.code == code, "where Ray does not stop it"
    assert bool(stopped) == (code in (2, 4))
