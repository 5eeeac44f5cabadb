"""What `gistmill submit` refuses before anything is sent: one line, exit 2, in seconds."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import create_server
from typing import Any, ClassVar

import pytest

from jobs.graph.resolved_run import read_run
from jobs.submit.ray_job import send, write_marker
from pipeline.cluster.ray_jobs import Job
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path
from tests.support.clusters.loopback import serving
from tests.support.clusters.ray_head import free_ports
from tests.support.command import ROOT, one_line, refused

pytestmark = pytest.mark.sampled


@contextmanager
def served(status: int, content: bytes) -> Iterator[str]:
    """The address of a server that is no Ray."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as address:
        yield address


def sent_to(address: str, folder: Path) -> str:
    """The line that sending there is refused with; nothing is left of it."""
    warehouse = folder / "warehouse"
    line = refused("submit", f"cluster.address={address}", f"warehouse={warehouse}")
    assert not warehouse.exists()
    return line


def test_a_port_that_nobody_has(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    line = sent_to(f"http://127.0.0.1:{port}", tmp_path)
    assert line == f"cluster.address=http://127.0.0.1:{port}: cannot connect; is the head up?"


@pytest.mark.slow
def test_a_port_that_is_silent(tmp_path: Path) -> None:
    before = time.monotonic()
    with create_server(("127.0.0.1", 0)) as silent:
        line = sent_to(f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
    assert line.endswith(": no answer in 8 seconds")
    assert time.monotonic() - before < 15


@pytest.mark.parametrize(
    ("status", "content"),
    [(200, b"<html>hello</html>"), (404, b""), (500, b"oh"), (200, b"[1]"), (200, b"{}")],
)
def test_an_address_that_is_no_ray(tmp_path: Path, status: int, content: bytes) -> None:
    with served(status, content) as address:
        assert ": not the answer of a Ray dashboard (" in sent_to(address, tmp_path)


@pytest.mark.parametrize("address", ["auto", "127.0.0.1:6379", "ray://127.0.0.1:10001"])
def test_an_address_that_is_no_dashboards(tmp_path: Path, address: str) -> None:
    line = sent_to(address, tmp_path)
    assert line == (
        f"cluster.address={address}: a run is submitted to the dashboard's address, http://HEAD:8265"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cluster.address=http://h:1"], "warehouse=warehouse: the cluster does not see this"),
        (["cluster.address=http://h:1", "warehouse=/x", "corpus=text", "corpus.path=conf/demo"],
         "corpus.path=conf/demo: the cluster does not see this folder; name storage that it"),
        (["cluster.address=http://h:1", "warehouse=/x", "engine=vllm", "engine.model=stages"],
         "engine.model=stages: no folder with a config.json"),
        (["warehouse=/x"], "cluster.address is not set"),
        (["cluster=inline"], "cluster=inline: use gistmill run on this machine"),
        (["cluster=local"], "cluster=local: use gistmill run on this machine"),
        (["cluster.address=http://h:1", "limitt=1"], "limitt: no such key"),
        (["cluster=slurm", "cluster.partition=a b", "warehouse=/x"], "cluster.partition=a b:"),
        (["cluster=kuberay", "warehouse=/x"], "cluster.image is not set"),
        (["cluster=kuberay", "cluster.image=i", "warehouse=/data/w"],
         "warehouse=/data/w: would be lost with its pod; name an object store"),
        (["cluster=kuberay", "cluster.image=i", "warehouse=s3://b", "family=conf/prompts/generic"],
         "family=conf/prompts/generic: local files are not sent to Kubernetes"),
        (["--stop", "cluster=slurm", "run=x"], "--stop: slurm ends its jobs itself"),
        (["--stop", "--print"], "--print, --detach and --stop: one of them at a time"),
    ],
)  # fmt: skip
def test_words_of_no_use(words: list[str], says: str) -> None:
    assert refused("submit", *words).startswith(says)


def test_a_model_that_only_this_machine_has(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = f"engine.model={os.path.relpath(tmp_path)}"
    words = ("cluster.address=http://h:1", "warehouse=/x", "engine=vllm", model)
    assert refused("submit", *words).startswith(f"{model}: the cluster does not see this folder")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cluster=slurm"], "cluster=slurm: gistmill submit sends a run there"),
        (["cluster=kuberay", "cluster.image=i"], "cluster=kuberay: gistmill submit sends a run"),
        (["cluster=ray", "cluster.address=http://h:1"], "cluster.address: gistmill submit sends"),
    ],
)
def test_run_does_not_reach_them(words: list[str], says: str) -> None:
    assert refused("run", *words).startswith(says)


def begun(job: str, warehouse: Path) -> "subprocess.CompletedProcess[str]":
    """What the head starts, with words that would fail at once."""
    command = [sys.executable, "-m", "jobs.cli.job_entry", job, str(warehouse), "limitt=1"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


class Head:
    """A head without jobs, until another submit sends the run just before this one does."""

    address = "http://h:1"
    sent: ClassVar[list[Job]] = []
    is_first: ClassVar[bool] = False
    warehouse: ClassVar[str] = ""

    def __init__(self, address: str) -> None:
        pass

    def all(self) -> list[Job]:
        return self.sent

    def send(self, job_id: str, *given: Any) -> None:
        metadata = {"run": "r", "warehouse": self.warehouse or given[-1]["warehouse"]}
        if not self.is_first:
            self.sent.append(Job(job_id, "RUNNING", None, "", metadata))
        raise UsageError("Job with submission_id gistmill-r-1 already exists")


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> type[Head]:
    monkeypatch.setattr("jobs.submit.ray_job.RayJobs", Head)
    monkeypatch.setattr("jobs.submit.ray_job.pack", lambda folder: lambda key, path: str(path))
    Head.sent, Head.is_first, Head.warehouse = [], False, ""
    return Head


def test_the_second_of_two_submits_follows_the_first(tmp_path: Path, head: type[Head]) -> None:
    """Both have chosen the same id; the marker is that of the job that was sent."""
    words = ["cluster=ray", "cluster.address=http://h:1", f"warehouse={tmp_path}", "run=r"]
    assert send(read_run(words), words, None).job == "gistmill-r-1"
    assert (tmp_path / "runs" / ".r.sent").read_text() == "gistmill-r-1"


@pytest.mark.parametrize("elsewhere", ["", "/another"])
def test_what_is_refused_for_another_reason_leaves_no_marker(
    tmp_path: Path, head: type[Head], elsewhere: str
) -> None:
    """Such as the same id for another warehouse."""
    head.is_first, head.warehouse = not elsewhere, elsewhere
    words = ["cluster=ray", "cluster.address=http://h:1", f"warehouse={tmp_path}", "run=r"]
    with pytest.raises(UsageError, match="already exists"):
        send(read_run(words), words, None)
    assert not (tmp_path / "runs" / ".r.sent").exists()


@pytest.mark.parametrize("cluster", ["ray cluster.address=http://h:1", "kuberay cluster.image=i"])
@pytest.mark.parametrize("env_vars", ["null", "[A]", "{A: 1}"])
def test_variables_that_are_none_are_refused(cluster: str, env_vars: str) -> None:
    words = [*f"cluster={cluster}".split(), "warehouse=s3://b/w"]
    line = refused("submit", "--print", *words, f"cluster.runtime_env={{env_vars: {env_vars}}}")
    assert line.startswith("cluster.runtime_env: env_vars are names with texts; write")


@pytest.mark.slow
def test_a_warehouse_that_is_not_shared_is_refused_by_the_job(tmp_path: Path) -> None:
    line = one_line(begun("gistmill-my-run-3", tmp_path / "warehouse"))
    assert line.startswith(
        f"warehouse={tmp_path / 'warehouse'}: not the one that gistmill-my-run-3"
    )
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.slow
def test_a_job_takes_its_mark_and_runs(tmp_path: Path) -> None:
    write_marker(as_path(tmp_path), "my-run", "gistmill-my-run-3")
    assert one_line(begun("gistmill-my-run-3", tmp_path)).startswith("limitt: no such key")
    assert not list((tmp_path / "runs").iterdir())
