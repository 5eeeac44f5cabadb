"""What `gistmill submit` refuses before anything is sent: one line, exit 2, in seconds; and what
travels to a cluster: code that runs there by itself, files, the commit, no secrets."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from socket import create_server

import pytest

from jobs.graph.resolved_run import read_run
from jobs.submit import rendered
from jobs.submit.package import pack, words_on_cluster
from jobs.submit.ray_job import command_at
from pipeline.files.storage import as_path
from tests.support.clusters.loopback import serving
from tests.support.clusters.ray_head import free_ports
from tests.support.command import ROOT, refused
from tests.support.docs.pages import blocks

pytestmark = pytest.mark.sampled
COMMANDS = [
    shlex.split(command.replace("\\\n", ""))
    for block in blocks("docs/clusters.md", "sh")
    for command in re.findall(r"^(?:nohup )?(gistmill (?:run|submit) (?:.*\\\n)*.*)$", block, re.M)
]
RAY = ["cluster=ray", "cluster.address=http://h:1"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        # What `gistmill run` does not reach.
        (["run", "cluster=slurm"], "cluster=slurm: gistmill submit sends a run there"),
        (["run", "cluster=kuberay", "cluster.image=i"], "cluster=kuberay: gistmill submit sends a"),
        (["run", *RAY], "cluster.address: gistmill submit sends"),
        (["cluster.address=http://h:1"], "warehouse=warehouse: the cluster does not see this"),
        (["cluster.address=http://h:1", "warehouse=/x", "corpus=text", "corpus.path=conf/demo"],
         "corpus.path=conf/demo: the cluster does not see this folder; name storage that it"),
        (["cluster=slurm", "warehouse=s3://b/w", "embedder.model=conf/demo"],
         "embedder.model=conf/demo: the cluster does not see this folder"),
        (["cluster.address=http://h:1", "warehouse=/x", "engine=vllm", "engine.model=stages"],
         "engine.model=stages: no config.json and no params.json"),
        (["warehouse=/x"], "cluster.address is not set"),
        *((["warehouse=/x", f"cluster.address={address}"], f"cluster.address={address}: a run is "
           "submitted to the dashboard's address, http://HEAD:8265")
          for address in ("auto", "127.0.0.1:6379", "ray://127.0.0.1:10001")),
        *(([f"cluster={name}"], f"cluster={name}: use gistmill run on this machine")
          for name in ("inline", "local")),
        (["cluster.address=http://h:1", "limitt=1"], "limitt: no such key"),
        (["cluster=slurm", "cluster.partition=a b", "warehouse=/x"], "cluster.partition=a b:"),
        (["cluster=kuberay", "warehouse=/x"], "cluster.image is not set"),
        (["cluster=kuberay", "cluster.image=i", "warehouse=/data/w"],
         "warehouse=/data/w: would be lost with its pod; name an object store"),
        (["cluster=kuberay", "cluster.image=i", "warehouse=s3://b", "family=conf/prompts/generic"],
         "family=conf/prompts/generic: local files are not sent to Kubernetes"),
        *((["--print", *cluster, "warehouse=s3://b/w",
            f"cluster.runtime_env={{env_vars: {env_vars}}}"],
           "cluster.runtime_env: env_vars are names with texts; write")
          for cluster in (RAY, ["cluster=kuberay", "cluster.image=i"])
          for env_vars in ("null", "[A]", "{A: 1}")),
        (["--detach", "--print"], "--print, --detach: one of them at a time"),
    ],
)  # fmt: skip
def test_words_of_no_use(words: list[str], says: str) -> None:
    verb = [] if words[0] == "run" else ["submit"]
    assert refused(*verb, *words).startswith(says)


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
    with serving(lambda path: (status, content)) as address:
        assert ": not the answer of a Ray dashboard (" in sent_to(address, tmp_path)


def test_a_job_runs_only_where_its_submitter_s_warehouse_is(tmp_path: Path) -> None:
    warehouse, path = tmp_path / "it's mine", f"{Path(sys.executable).parent}:/usr/bin:/bin"
    begin = command_at(as_path(warehouse), ["-c", "print('begun')"])
    for code, said in ((0, "begun\n"), (2, "")):
        done = subprocess.run(
            ["sh", "-c", begin], env={"PATH": path}, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (code, said)
        shutil.rmtree(warehouse, ignore_errors=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_pages_commands_are_understood(command: list[str]) -> None:
    words = [word for word in command[2:] if "=" in word]
    if command[1] == "run":
        assert read_run(words).config.run == "nqa"
    else:
        assert "run=nqa" in rendered(words)


@pytest.mark.slow
def test_the_code_runs_where_there_is_nothing_else(tmp_path: Path) -> None:
    pack(tmp_path)
    told = "import jobs, pipeline.core.settings as s; print(jobs.__file__, s.CONF)"
    for command in (["-m", "gistmill", "prompts", "check"], ["-c", told]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == [f"{tmp_path}/jobs/__init__.py", f"{tmp_path}/gistmill/conf"]


def test_a_family_of_prompts_travels(tmp_path: Path) -> None:
    family, there = tmp_path / "mine", tmp_path / "there"
    shutil.copytree(ROOT / "conf" / "prompts" / "generic", family)
    words = [*RAY, f"family={family}", "run=r"]
    sent = words_on_cluster(read_run(words), words, pack(there))
    assert "family=files/family/mine" in sent and f"family={family}" not in sent
    names = [{file.name for file in f.iterdir()} for f in (family, there / "files/family/mine")]
    assert names[0] == names[1]


def test_secrets_of_the_jobs_environment_stand_in_no_word() -> None:
    assert "hunter" not in rendered(
        [*RAY, "cluster.runtime_env.env_vars.HF_TOKEN=hunter3", "warehouse=/x"]
    )
